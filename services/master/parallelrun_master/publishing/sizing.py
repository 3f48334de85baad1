"""The size of mini-batches while a job chooses it itself: what is measured, and how much may be cut by that.

Who cuts may do so in a thread of its own (`planning/apart.py`): it only calls `next`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy import batch_size
from parallelrun_master.policy.batch_size import MOST_ITEMS, MOST_TRIES, Choice, MeasuredTry
from parallelrun_master.policy.trials import Trials

MOST_AHEAD: Final = 100_000
"""Files that wait in memory for a mini-batch."""
_TOO_LONG: Final = ("RUN_TIMEOUT", "LOAD_TIMEOUT")
_NO_MEMORY: Final = ("OOM_KILLED", "GPU_OUT_OF_MEMORY")
_MUCH: Final = 2


class Sizing:
    """Chooses the number of files of the next mini-batch, for one leader of one job.

    Args:
        cut: how many mini-batches are in the manifest.
        earlier: what other leaders have recorded, in its order.
    """

    def __init__(self, spec: JobSpec, cut: int, earlier: Iterable[Outcome] = ()) -> None:
        self.is_waiting = False
        """Whether nothing can be cut before others are decided, and nothing more be found."""
        self.found = 0
        """How many files are known that are in no mini-batch."""
        self.has_found_all = False
        self._timeout_s = spec.run_invocation_timeout
        self._tries: deque[MeasuredTry] = deque(maxlen=MOST_TRIES)
        self._quickest_s: dict[int, float] = {}
        """The shortest try that is done, by its items."""
        self._most = MOST_ITEMS
        """What memory suffices for."""
        self._trials = Trials(MOST_ITEMS)
        self._workers = 1
        self._cut = cut
        self._may_be_cut = 0
        """Up to which mini-batch, this one excluded."""
        self._told = 0
        self._has_news = False
        self.observe(earlier)
        self.choice = self._chosen()

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of tries that have ended. What raised an error says nothing of how long items take, but perhaps
        that they are too many."""
        for each in outcomes:
            category = each.failure.category if each.failure is not None else ""
            if each.items < 1:
                continue
            if category in _NO_MEMORY:
                # For good, as the same items would fail again; a file that is too much by itself says nothing.
                self._most = min(self._most, each.items // 2) or self._most
            elif not category or category in _TOO_LONG:
                seconds = each.load_s + each.run_s
                self._tries.append(MeasuredTry(each.items, seconds, is_done=not category))
                if not category:
                    self._quickest_s[each.items] = min(seconds, self._quickest_s.get(each.items, seconds))
            self._has_news = True
            if each.status == "done":
                self._trials.done(each.items)
            elif each.status == "failed" and category in _TOO_LONG:
                self._trials.stopped(each.items)
            elif each.status == "failed":
                self._trials.failed(each.mini_batch, each.items)

    def refresh(self, decided: int, workers: int) -> None:
        """So many mini-batches are decided, and so many workers are there: choose again."""
        if self._has_news or workers != self._workers:
            self._has_news, self._workers = False, workers
            self.choice = self._chosen()
        self._trials.refresh()
        self._may_be_cut = decided + batch_size.mini_batches_ahead(self.choice, workers)

    def _chosen(self) -> Choice:
        call_s = batch_size.seconds_of_call(self._quickest_s)
        wanted_s = batch_size.target_s(self._timeout_s, call_s)
        most = min(self._most, self._trials.most)
        return batch_size.choose(tuple(self._tries), self._workers, wanted_s, most, call_s or 0.0)

    @property
    def has_room(self) -> bool:
        """Return whether a mini-batch may be cut now."""
        return self._cut < self._may_be_cut

    @property
    def is_learning(self) -> bool:
        """Return whether nothing is cut until somebody knows how long the first mini-batches, or larger ones, take."""
        return self.is_waiting and (self.choice.item_s is None or self.choice.is_growing)

    @property
    def must_wait(self) -> bool:
        """Return whether there is nothing to do until mini-batches are decided."""
        return self.is_waiting and not self.has_room

    def next(self, known_files: int, *, has_more: bool, is_last: bool) -> int | None:
        """Return how many files the next mini-batch gets of those that are known; 0: none yet; None: more are to be
        known first. A mini-batch of so many is taken as cut.

        Args:
            has_more: whether the input has more than these.
            is_last: no other input follows.
        """
        choice, workers, has_room = self.choice, self._workers, self.has_room
        if not self._trials.may_begin:
            choice = choice._replace(items=min(choice.items, self._trials.proven))
        self.found, self.has_found_all = known_files, is_last and not has_more
        wanted_files = min(MOST_AHEAD, batch_size.items_to_know(choice, workers)) if has_room else MOST_AHEAD
        if has_more and known_files < wanted_files:
            self.is_waiting = False
            return None
        self.is_waiting = not has_room
        if self.is_waiting or not known_files:
            return 0
        is_near_end = self.has_found_all and known_files < wanted_files
        items = (
            batch_size.items_near_end(choice, known_files, workers) if is_near_end else min(choice.items, known_files)
        )
        self._cut += 1
        self._trials.cut(items)
        self.found = known_files - items
        return items

    def show(self, progress: Progress) -> None:
        """Put into a job's progress what is chosen, and how much is found."""
        progress.chosen_size, progress.chosen_why = self.choice.items, self.choice.why
        progress.items_ahead, progress.all_found = self.found, self.has_found_all

    def news(self) -> Choice | None:
        """The choice, if it is quite another one than what was told last; it is told now."""
        items = self.choice.items
        if self._told and self._told / _MUCH < items < self._told * _MUCH:
            return None
        self._told = items
        return self.choice


def sizing_of(spec: JobSpec, folder: Path, cut: int) -> Sizing:
    """Return the sizing of a leader who begins, or goes on where another one has ended."""
    return Sizing(spec, cut, read_decisions(folder) if cut else ())
