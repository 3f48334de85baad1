"""From the inputs to the queue: list and cut into the manifest at disk speed, and publish from it within bounds.

The two halves don't wait for each other. The manifest runs ahead to its end, so the total is known early;
publishing stops when enough is on Redis, so a job of twenty million files needs no more memory than a small one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from pathlib import Path

from parallelrun_core.folder.decisions import Decided
from parallelrun_core.folder.disk_trouble import is_full, is_shortage_here, may_pass
from parallelrun_core.folder.manifest import Closing, Entry, ManifestCursor, ManifestWriter, read_closing
from parallelrun_core.message import MAX_MESSAGE_BYTES, decode, encode_reference
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_master.handover import Handover
from parallelrun_master.planning.cutting import Cut
from parallelrun_master.planning.input_cuts import InputCuts, Known, known_in
from parallelrun_master.planning.shuffling import OnProgress
from parallelrun_master.policy.window import Window

_CALL_BYTES = 4 << 20


class InputUnreadable(Exception):
    """An input can't be listed or read."""


class InputTrouble(Exception):
    """An input can't be listed or read for now."""


class Scheduler:
    """Lists the inputs and writes the manifest, a slice of time at a time.

    Args:
        begins, on_progress: see `InputCuts`.

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
    ) -> None:
        self._folder = folder
        self.closing: Closing | None = read_closing(folder)
        self.handover = Handover()
        """What was scheduled last, durable."""
        self._writer: ManifestWriter | None = None
        if self.closing is None:
            self._writer = ManifestWriter(folder, term)
            self.closing = read_closing(folder)  # the leader before us may have closed it a moment ago
            if self.closing is not None:
                self._writer.stop()
                self._writer = None
        if self._writer is not None:
            known = known_in(folder) if self._writer.mini_batches else Known()
            self._inputs = InputCuts(folder, spec, known, begins, term=term, on_progress=on_progress)
            self._cuts = self._cuts_of(self._inputs)

    @property
    def mini_batches(self) -> int:
        """How many are in the manifest."""
        return self.closing.mini_batches if self.closing else self._writer.mini_batches if self._writer else 0

    @property
    def items(self) -> int:
        return self.closing.items if self.closing else self._writer.items if self._writer else 0

    def step(self, budget_s: float) -> bool:
        """Schedule for about this long; returns whether there is more to do. What was scheduled is durable on return.

        Raises:
            InputTrouble: an input can't be read for now.
            InputUnreadable: an input can't be read.
            InvalidInput: an input is not what the job spec or its MLTable file says.
            ShuffleFailed: its rows can't be grouped here.
            OSError: something is wrong here, and not with an input.
        """
        writer = self._writer
        if writer is None:
            return False
        found, more = self._cut(budget_s)
        first, raws = writer.mini_batches, [each.raw for each in found]
        writer.extend(raws, sum(each.items for each in found))
        failpoints.reach("schedule.before_sync")
        if more:
            writer.sync()
            self.handover.add(first, raws)
            return True
        self.closing = writer.close(order="sorted" if self._inputs.is_sorted else "listing")
        self._writer = None
        self.handover.add(first, raws)
        failpoints.reach("schedule.closed")
        return False

    def _cut(self, budget_s: float) -> tuple[list[Cut], bool]:
        """What can be cut in about this long, and whether there is more."""
        until = time.perf_counter() + budget_s
        found = []
        for cut in self._cuts:
            if cut is not None:
                found.append(cut)
            if time.perf_counter() >= until:
                return found, True
        return found, False

    def _cuts_of(self, inputs: InputCuts) -> Generator[Cut | None]:
        try:
            yield from inputs
        except OSError as error:
            if is_full(error) or is_shortage_here(error) or self._is_in_folder(error):
                raise
            raise (InputTrouble if may_pass(error) else InputUnreadable)(str(error)) from error

    def _is_in_folder(self, error: OSError) -> bool:
        """Whether this is about a file in the job folder."""
        name = error.filename
        return isinstance(name, str | bytes) and Path(os.fsdecode(name)).is_relative_to(self._folder)

    def stop(self) -> None:
        """Stop: nothing that was begun continues in the background."""
        if self._writer is not None:
            self._cuts.close()


class Publisher:
    """Puts the manifest's mini-batches on Redis, in order, as far ahead as the window allows.

    Args:
        handover: the scheduler's; without one, all is read from the manifest.
    """

    def __init__(self, folder: Path, queue: LeaderQueue, decided: Decided, handover: Handover | None = None) -> None:
        self.window = Window()
        self._handover = handover or Handover()
        self._folder = folder
        self._queue = queue
        self._decided = decided
        self._cursor: ManifestCursor | None = None
        self.rewind()

    def rewind(self) -> None:
        """Continue from Redis' checkpoint: it may have forgotten the last moment."""
        if self._cursor is not None:
            self._cursor.close()
        self._cursor = None
        next_id = self._queue.checkpoint()
        self.window.rewind(next_id, self._queue.publish(next_id, []).outstanding)

    def step(self, scheduled: int) -> bool:
        """Publish what may be published now of `scheduled` durable mini-batches; returns whether anything was.

        Redis takes nothing when the job is in another state, or its checkpoint is elsewhere.
        """
        count = self.window.room(scheduled)
        messages = self._messages(count) if count else []
        if not messages:
            return False
        failpoints.reach("publish.before")
        published = self._queue.publish(self.window.next_id, messages)
        failpoints.reach("publish.after")
        if self.window.published(messages, next_id=published.next_id, outstanding=published.outstanding):
            return True
        self.rewind()
        return False

    def _messages(self, count: int) -> list[bytes]:
        first = self.window.next_id
        messages = [] if self._cursor else self._handover.take(first, count, _CALL_BYTES)
        messages = messages or self._read(first, count)
        if self._decided.has_any(first, first + len(messages)):
            return [b"" if number in self._decided else message for number, message in enumerate(messages, first)]
        return messages

    def _read(self, first: int, count: int) -> list[bytes]:
        """Read the next messages from the manifest; from now on, all are."""
        if self._cursor is None:
            self._handover.end()
            self._cursor = ManifestCursor(self._folder, first=first)
        messages: list[bytes] = []
        size = 0
        while len(messages) < count and size < _CALL_BYTES:
            entry = self._cursor.read()
            if entry is None:
                break
            message = _for_redis(entry)
            messages.append(message)
            size += len(message)
        return messages


def _for_redis(entry: Entry) -> bytes:
    """The message itself, or a reference to it in the manifest when it is too long for Redis."""
    if len(entry.raw) <= MAX_MESSAGE_BYTES:
        return entry.raw
    return encode_reference(decode(entry.raw).items, entry.term, entry.offset)
