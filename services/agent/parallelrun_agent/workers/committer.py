"""Makes results durable, group by group, in a thread of its own: rows first, then the journal.

While one group is being synced the next one gathers: the slower the disk, the more mini-batches share a sync, and no
worker ever waits for it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.layout import PRIVATE_FOLDER
from parallelrun_core.service import failpoints
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.wire.outcome import Outcome, encode, encode_list

log = logger()

GATHER_S: Final = 0.1
"""How long results wait for others to share their syncs, while the agent doesn't wait for them."""
T = TypeVar("T")


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """An outcome that is not durable yet, and the part file that its rows are in (-1: none)."""

    outcome: Outcome
    part_fd: int


class Committer:
    """Syncs the candidates of one session.

    Args:
        wake: written to when something was added to one of the results.
        prepare: called before the first journal is begun, and again after it has raised an OSError.
    """

    def __init__(self, journal: Path, *, sync: bool, wake: int, prepare: Callable[[], object]) -> None:
        self.durable: deque[tuple[Outcome, bytes]] = deque()
        """Each with what the journal has of it."""
        self.rows_missing: deque[Candidate] = deque()
        """Can't be made durable, because the rows are not where the worker said."""
        self.not_stored: deque[tuple[Candidate, str, bool]] = deque()
        """Could not be made durable: candidate, error, and whether all that is in its part file may be lost."""
        self._journal_path = journal
        self._journals = 0
        self._journal: RecordWriter | None = None
        self._lost_parts: set[int] = set()
        self._sync = sync
        self._prepare = prepare
        self._wake = wake
        self._gathering: GroupQueue[Candidate | int] = GroupQueue(GATHER_S)
        """Candidates, and behind the last ones of a part file its descriptor, which is to be closed."""
        self.hurry = self._gathering.hurry  # the agent waits for what was added
        self._thread = started_thread("committer", self._work)

    def add(self, outcome: Outcome, part_fd: int) -> None:
        """Make this outcome durable soon. For one thread only, as all that follows."""
        self._gathering.add(Candidate(outcome, part_fd))

    def close_part(self, part_fd: int) -> None:
        """Close a dead worker's part file after making its rows durable."""
        self._gathering.add(part_fd)

    def stop(self) -> None:
        """Finish what was added, then end."""
        self._gathering.finish()
        self._thread.join()

    def _work(self) -> None:
        while group := self._gathering.next_group():
            if candidates := [each for each in group if type(each) is Candidate]:
                self._commit(candidates)
                os.write(self._wake, b"\1")
            if len(candidates) < len(group):
                for each in group:
                    if isinstance(each, int):
                        self._close_part(each)
        self._abandon_journal()

    def _commit(self, group: list[Candidate]) -> None:
        try:
            group = self._with_rows(group)
            self._journal = self._journal or self._open_journal()
            self.durable.extend(self._make_durable(group, self._journal))
        except OSError as error:
            log.error("commit_failed", error=str(error), mini_batches=len(group))
            self.not_stored.extend((each, str(error), each.part_fd in self._lost_parts) for each in group)
            self._abandon_journal()  # a record in it may be incomplete, and nothing after that could be read

    def _close_part(self, fd: int) -> None:
        with suppress(OSError):  # what was committed has been synced, and nothing else counts
            os.close(fd)
        self._lost_parts.discard(fd)

    def _abandon_journal(self) -> None:
        if self._journal is not None:
            with suppress(OSError):
                self._journal.close()
            self._journal = None

    def _open_journal(self) -> RecordWriter:
        """The session's journal; another one after a failed write."""
        self._prepare()
        self._journal_path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)  # that of an earlier generation may go late
        self._journals += 1
        name = self._journal_path.name
        return RecordWriter(self._journal_path.with_name(name if self._journals == 1 else f"{name}.{self._journals}"))

    def _with_rows(self, group: list[Candidate]) -> list[Candidate]:
        """Return the candidates whose part file is as long as the worker says: the script may have closed or cut it."""
        sizes = {fd: os.fstat(fd).st_size for fd in {each.part_fd for each in group if each.outcome.length}}
        good = []
        for each in group:
            outcome = each.outcome
            if not outcome.length or outcome.offset + outcome.length <= sizes[each.part_fd]:
                good.append(each)
            else:
                self.rows_missing.append(each)
        return good

    def _make_durable(self, group: list[Candidate], journal: RecordWriter) -> Iterable[tuple[Outcome, bytes]]:
        # Encoded here, all at once: between two mini-batches it would take several times as long.
        encoded = [encode(candidate.outcome) for candidate in group]
        failpoints.reach("commit.before_sync")
        if self._sync:
            for fd in {candidate.part_fd for candidate in group if candidate.outcome.length}:
                self._sync_part(fd)
        failpoints.reach("commit.after_sync")
        journal.append(encode_list(encoded))
        if self._sync:
            journal.sync()
        else:
            journal.flush()
        failpoints.reach("commit.after_journal")
        return zip([candidate.outcome for candidate in group], encoded, strict=True)

    def _sync_part(self, fd: int) -> None:
        """Sync a part file. After an error, none of it counts as durable: the kernel reports an error only once."""
        if fd in self._lost_parts:
            raise OSError(errno.EIO, "an earlier sync of this part file has failed")
        try:
            os.fdatasync(fd)
        except OSError:
            self._lost_parts.add(fd)
            raise


class GroupQueue(Generic[T]):
    """A queue to which one thread adds, and from which another one takes groups. While it is at one group, the next one
    gathers.

    Args:
        most_s: how long a group that nobody is in a hurry for may gather after the taker is ready for it.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._items: deque[T] = deque()
        self._news = threading.Condition()
        """Guards the two below, and every wait. Items come and go without it: `deque` takes care of itself."""
        self._is_awaited = False
        self._is_over = False

    def add(self, item: T) -> None:
        """Add to the next group. For one thread only."""
        self._items.append(item)
        # After any other item, the taker is awake, or it takes that one and checks for more before it waits again.
        if len(self._items) == 1:
            with self._news:
                self._news.notify()

    def hurry(self) -> None:
        """Gather no longer, as what was added is awaited. For the thread that adds."""
        if self._items and not self._is_awaited:
            with self._news:
                self._is_awaited = True
                self._news.notify()

    def finish(self) -> None:
        """Nothing more will be added."""
        with self._news:
            self._is_over = True
            self._news.notify()

    def next_group(self) -> list[T]:
        """All that has gathered, in order; waits for the first. Empty when it is over. For one thread only."""
        with self._news:
            self._news.wait_for(lambda: self._items or self._is_over)
            self._news.wait_for(lambda: self._is_awaited or self._is_over, self._most_s)
            self._is_awaited = False
            return [self._items.popleft() for _ in range(len(self._items))]
