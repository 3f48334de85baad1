"""The decision log: the one authority on what became of each mini-batch.

A term log (see `term_log`); each record is a JSON array of outcomes with status `done` or `failed`, as the
leader accepted them. The first decision of a (mini-batch, generation) counts, and a later generation (a retry
that the user asked for) replaces a failure, never a success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.folder.term_log import open_term, read_term_log
from parallelrun_core.outcome import Outcome, Place, decode_list, decode_places, encode_all

NAME = "decisions"
_STEP_BYTES = 4096
"""A table that grows by steps is cheaper than one that grows with each entry."""


class FirstWins:
    """Which mini-batches have a decision, at a byte each: for whoever reads a log and needs no totals."""

    _OPEN, _FAILED, _DONE = 0, 1, 2

    def __init__(self) -> None:
        self._states = bytearray()
        self._failed_in: dict[int, int] = {}
        """The generation of the last failure of each, even if it was reopened since."""
        self.count = 0
        """Mini-batches that have a decision."""

    def __contains__(self, mini_batch: int) -> bool:
        return mini_batch < len(self._states) and self._states[mini_batch] != self._OPEN

    def has_any(self, first: int, end: int) -> bool:
        """Whether a mini-batch from `first` up to `end`, exclusively, has a decision."""
        return any(self._states[first:end])

    def accept(self, outcome: Place) -> bool:
        """Whether this outcome is the decision of its mini-batch."""
        mini_batch = outcome.mini_batch
        if mini_batch >= len(self._states):
            self._states.extend(bytes(mini_batch + _STEP_BYTES - len(self._states)))
        state = self._states[mini_batch]
        if (state or self._failed_in) and self._is_late(outcome, state):
            return False
        if not state:
            self.count += 1
        if outcome.status == "done":
            self._states[mini_batch] = self._DONE
        else:
            self._states[mini_batch] = self._FAILED
            self._failed_in[mini_batch] = outcome.generation
        return True

    def _is_late(self, outcome: Place, state: int) -> bool:
        """Whether the earlier decision stands."""
        return state == self._DONE or outcome.generation <= self._failed_in.get(outcome.mini_batch, -1)

    def reopen(self, mini_batches: Iterable[int], generation: int) -> list[int]:
        """Let those that failed in an earlier generation be decided again; returns them."""
        reopened = [each for each in mini_batches if self._failed_in[each] < generation]
        for mini_batch in reopened:
            self._states[mini_batch] = self._OPEN
        self.count -= len(reopened)
        return reopened


class Decided:
    """Which mini-batches have a decision, and the totals of the decisions."""

    def __init__(self) -> None:
        self._first = FirstWins()
        self._failed_items: dict[int, int] = {}  # of each mini-batch that counts as failed
        self.done = 0
        self.empty = 0
        """Those of `done` that have no items."""
        self.items_done = 0
        self.items_failed = 0
        self.rows = 0
        self.line_breaks = 0
        self.shortened = 0

    def __contains__(self, mini_batch: int) -> bool:
        return mini_batch in self._first

    def has_any(self, first: int, end: int) -> bool:
        """Whether a mini-batch from `first` up to `end`, exclusively, has a decision."""
        return self._first.has_any(first, end)

    @property
    def count(self) -> int:
        """Mini-batches that have a decision."""
        return self._first.count

    @property
    def failed(self) -> int:
        """How many mini-batches have failed."""
        return len(self._failed_items)

    def accept(self, outcome: Outcome) -> bool:
        """Whether this outcome is the decision of its mini-batch; if so, it is counted."""
        if not self._first.accept(outcome):
            return False
        if self._failed_items:
            self._take_out(outcome.mini_batch)
        if outcome.status == "done":
            self._count_done(outcome)
        else:
            self._failed_items[outcome.mini_batch] = outcome.failed_items
            self.items_failed += outcome.failed_items
        return True

    def _count_done(self, outcome: Outcome) -> None:
        items, rows = outcome.items, outcome.rows
        self.done += 1
        self.rows += rows
        if rows < items:
            self.items_done += rows
            self.items_failed += items - rows
        else:
            self.items_done += items
        # Hardly any mini-batch has something of these.
        if not items:
            self.empty += 1
        if outcome.line_breaks:
            self.line_breaks += outcome.line_breaks
        if outcome.shortened:
            self.shortened += outcome.shortened

    def reopen(self, generation: int, mini_batches: list[int] | None) -> None:
        """Let those that failed in an earlier generation (all of them, or these) be decided again."""
        failed = self._failed_items.keys()
        chosen = failed if mini_batches is None else failed & set(mini_batches)
        for mini_batch in self._first.reopen(chosen, generation):
            self._take_out(mini_batch)

    def _take_out(self, mini_batch: int) -> None:
        """What was counted for its failure doesn't count any more."""
        self.items_failed -= self._failed_items.pop(mini_batch, 0)


class DecisionWriter:
    """The leader's own file of the decision log.

    Args:
        folder: the job's.
        term: the leader's; its file is created.
        seen: called with every decision of earlier terms, in order.

    Raises:
        FileExistsError: this term has a decision log already.
    """

    def __init__(self, folder: Path, term: int, seen: Callable[[Outcome], object] = lambda _: None) -> None:
        self.decided = Decided()
        # Our own file first: its header ends those of earlier leaders, which may still be writing.
        self._log: RecordWriter = open_term(folder, NAME, term)
        for outcome in read_outcomes(folder):
            if self.decided.accept(outcome):
                seen(outcome)

    def add(self, outcomes: list[Outcome], encoded: Sequence[bytes] = ()) -> list[Outcome]:
        """Record those that are decisions; returns them. Not durable before `sync()`.

        Args:
            encoded: the same outcomes as JSON arrays, if the caller has them: they need not be encoded again.
        """
        accepted = [outcome for outcome in outcomes if self.decided.accept(outcome)]
        if encoded and len(accepted) == len(outcomes):
            self._log.extend(encoded)
        elif accepted:
            self._log.append(encode_all(accepted))
        return accepted

    def sync(self) -> None:
        self._log.sync()

    def close(self) -> None:
        self._log.close()


def read_outcomes(folder: Path) -> Iterator[Outcome]:
    """Every recorded outcome, in the order of the log."""
    for _, _, raw in read_term_log(folder, NAME):
        yield from decode_list(raw)


def read_places(folder: Path) -> Iterator[Place]:
    """Where the rows of every recorded outcome are, in the order of the log: reads quicker than `read_outcomes`."""
    for _, _, raw in read_term_log(folder, NAME):
        yield from decode_places(raw)


def read_decisions(folder: Path) -> Iterator[Outcome]:
    """The decisions: the recorded outcomes without those that the first-wins rule drops.

    A mini-batch that failed and was retried by the user comes twice, in the order of its generations.
    """
    return filter(FirstWins().accept, read_outcomes(folder))
