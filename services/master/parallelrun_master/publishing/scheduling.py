"""The scheduler: lists and cuts the inputs into the manifest, at the speed of the disk, whatever is published by then.

The manifest runs ahead to its end, so the total is known early; see `publisher.py` for the other half.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path

from parallelrun_core.folder.disk_trouble import is_full, is_shortage_here, may_pass
from parallelrun_core.folder.manifest import Closing, ManifestWriter, read_closing
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_master.planning.amount import TableAmount
from parallelrun_master.planning.apart import WatchedThread
from parallelrun_master.planning.cutting import Cut
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput, Warn, known_in
from parallelrun_master.planning.shuffling import OnProgress
from parallelrun_master.publishing.handover import Handover
from parallelrun_master.publishing.sizing import Sizing


class InputUnreadable(Exception):
    """An input can't be listed or read."""


class InputTrouble(Exception):
    """An input can't be listed or read for now."""


class StoreTrouble(InputTrouble):
    """The store that it is in doesn't answer, or refuses for now."""


class Scheduler:
    """Lists the inputs and writes the manifest, a slice of time at a time.

    Args:
        begins, on_progress, rule, warn: see `InputCuts`; what these call is called in `step`.
        closing: the manifest's, if it is known to be complete.
        patience_s: how long a file system may leave it without an answer, while other inputs are in a store.
        sizing: makes the `Sizing` of a job that chooses the size of its mini-batches, given how many there are.

    Raises:
        FileExistsError: this term has a manifest already.
    """

    def __init__(
        self,
        folder: Path,
        spec: JobSpec,
        term: int,
        begins: Callable[[int, bool], object] = lambda *_: None,
        on_progress: OnProgress = lambda *_: None,
        *,
        closing: Closing | None = None,
        rule: PathRule | None = None,
        warn: Warn = lambda _: None,
        patience_s: float = 60.0,
        sizing: Callable[[int], Sizing] | None = None,
    ) -> None:
        self._folder = folder
        self._apart = WatchedThread(patience_s)
        self._said: deque[Callable[[], object]] = deque()
        self._ready: deque[Cut] = deque()
        """What the other thread has cut: given out also while it waits for more."""
        self.closing: Closing | None = closing or read_closing(folder)
        self.handover = Handover()
        """What was scheduled last, durable."""
        self.sizing: Sizing | None = None
        self._writer: ManifestWriter | None = None
        self.tables = TableAmount()
        """How much of tables this one has cut."""
        if self.closing is None:
            self._writer = ManifestWriter(folder, term)
            self.closing = read_closing(folder)  # the leader before us may have closed it a moment ago
            if self.closing is not None:
                self._writer.stop()
                self._writer = None
        if self._writer is not None:
            cut_before = known_in(folder) if self._writer.mini_batches else KnownInput()
            self.sizing = sizing(self._writer.mini_batches) if sizing is not None else None
            self._inputs = InputCuts(
                folder, spec, cut_before, self._later(begins), term=term, on_progress=self._later(on_progress),
                rule=rule,
                warn=self._later(warn), sizes=self.sizing,
            )  # fmt: skip
            self.tables = self._inputs.tables
            self._cuts = self._cuts_of(self._inputs)

    @property
    def mini_batches(self) -> int:
        """Return how many are in the manifest."""
        return self.closing.mini_batches if self.closing else self._writer.mini_batches if self._writer else 0

    @property
    def must_wait(self) -> bool:
        """Return whether there is nothing to do until mini-batches are decided."""
        # What was cut in the other thread is still to be recorded.
        is_at_rest = not self._ready and not self._apart.is_busy
        return self.sizing is not None and self.sizing.must_wait and is_at_rest

    @property
    def items(self) -> int:
        return self.closing.items if self.closing else self._writer.items if self._writer else 0

    def step(self, budget_s: float) -> bool:
        """Schedule for about this long; returns whether there is more to do. What was scheduled is durable on return.

        It returns in that time also while a store is waited for.

        Raises:
            InputTrouble: an input can't be read for now; of an input in a store, `StoreTrouble`.
            Hung: a file system has not answered for long.
            InputUnreadable: an input can't be read.
            InvalidInput: an input is not what the job spec or its MLTable file says.
            ShuffleFailed: its rows can't be grouped here.
            OSError: something is wrong here, and not with an input.
        """
        writer = self._writer
        if writer is None:
            return False
        cuts, has_more = self._cut(budget_s)
        first, raws = writer.mini_batches, [each.raw for each in cuts]
        writer.extend(raws, sum(each.items for each in cuts))
        failpoints.reach("schedule.before_sync")
        if has_more:
            writer.sync()
            self.handover.add(first, raws)
            return True
        self.closing = writer.close(order="sorted" if self._inputs.is_sorted else "listing")
        self._writer = None
        self.handover.add(first, raws)
        failpoints.reach("schedule.closed")
        return False

    def _cut(self, budget_s: float) -> tuple[list[Cut], bool]:
        """Return what can be cut in about this long, and whether there is more."""
        try:
            # Whether stores are asked may be known better meanwhile, but what the other thread does it must end.
            if self._apart.is_busy or self._inputs.asks_stores:
                has_more = self._apart.ask(partial(self._cut_here, budget_s)) is not False
            else:
                has_more = self._cut_here(budget_s)
        finally:
            while self._said:
                self._said.popleft()()
        return [self._ready.popleft() for _ in range(len(self._ready))], has_more

    def _cut_here(self, budget_s: float) -> bool:
        until = time.perf_counter() + budget_s
        for cut in self._cuts:
            if cut is not None:
                self._ready.append(cut)
            elif self.sizing is not None and self.sizing.must_wait:
                return True
            if time.perf_counter() >= until:
                return True
        return False

    def _later(self, call: Callable[..., object]) -> Callable[..., None]:
        return lambda *arguments: self._said.append(partial(call, *arguments))

    def _cuts_of(self, inputs: InputCuts) -> Generator[Cut | None]:
        try:
            yield from inputs
        except OSError as error:
            if is_full(error) or is_shortage_here(error) or self._is_in_folder(error):
                raise
            if isinstance(error, StoreAway):
                raise StoreTrouble(str(error)) from error
            raise (InputTrouble if may_pass(error) else InputUnreadable)(str(error)) from error

    def _is_in_folder(self, error: OSError) -> bool:
        """Return whether this is about a file in the job folder."""
        name = error.filename
        return isinstance(name, str | bytes) and Path(os.fsdecode(name)).is_relative_to(self._folder)

    def stop(self) -> None:
        """Stop: nothing that was begun continues in the background, but a request to a store until it is answered."""
        if self._writer is not None:
            self._apart.close(self._cuts.close)
            with suppress(OSError):  # the disk fails: what isn't durable was never counted
                self._writer.stop()
