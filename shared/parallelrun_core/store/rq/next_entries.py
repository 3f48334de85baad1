"""Entries that a process runs after the one for which RQ has forked it.

To fork a process, and to keep RQ's books, costs more than to lead a small job. So a process goes on with the next entry
of its queue, and keeps only that part of the books which others read: an entry is `started` while it runs, and gone
when it has ended. If the process dies with it, RQ's worker, its parent, notes that it has `failed`. An entry that is
lost in between is enqueued again, as any other.
"""

from __future__ import annotations

import mmap
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from redis import WatchError
from redis.client import Pipeline
from rq import Queue
from rq.job import JobStatus

from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.errors import CONNECTION_ERRORS
from parallelrun_core.store.rq.entries import REMEMBER_FAILED_S, Entry

log = logger()

_MAX_AGE_S: Final = 30.0
"""The age up to which a process takes another entry: what long work leaves behind in its memory ends with it."""
_EXPIRES_S: Final = 30 * 24 * 3600
"""The time after which Redis forgets an entry that was taken: longer than any runs, for machines that are lost."""
_LONGEST_ID: Final = 1024
_SIZE: Final = 2
"""Bytes of the length of an id."""


class RunningEntry:
    """The id of the entry that a process has taken by itself, in memory that it shares with its parent."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared

    @classmethod
    def create(cls) -> RunningEntry:
        """Allocate the memory, before the process is forked."""
        return cls(mmap.mmap(-1, _SIZE + _LONGEST_ID))

    def begin(self, entry_id: str) -> None:
        """Note in the process that it runs an entry, until `end`, which is not called if the entry fails."""
        data = entry_id.encode()
        self._shared[_SIZE : _SIZE + len(data)] = data
        self._shared[:_SIZE] = len(data).to_bytes(_SIZE, "little")

    def end(self) -> None:
        """Note in the process that its entry has ended."""
        self._shared[:_SIZE] = bytes(_SIZE)

    def take(self) -> str:
        """Return, in the parent, the id of the entry with which the process has died; empty: it ran none."""
        length = int.from_bytes(self._shared[:_SIZE], "little")
        self._shared[:_SIZE] = bytes(_SIZE)
        return self._shared[_SIZE : _SIZE + length].decode(errors="replace")


def run_next_entries(queue: Queue, running: RunningEntry, since: float, linger_s: int, *, worker: str) -> None:
    """Run the entries that wait in a queue, one after the other, in the main thread of a process that has run one.

    It returns when no entry waits, when the process is too old, or when SIGTERM has come during an entry, which then
    leaves that signal ignored. Between two entries, SIGTERM ends the process.

    Args:
        since: when the process began, on the monotonic clock.
        linger_s: how long to wait for one more entry.
        worker: the name of RQ's worker, its parent; no other one has it.

    Raises:
        Exception: whatever an entry raises, after which the process has to end.
    """
    while time.monotonic() - since < _MAX_AGE_S and not _was_told_to_stop():
        if (entry := _take(queue, linger_s, worker)) is None:
            return
        running.begin(entry.id)
        entry.perform()
        running.end()
        change_own(queue, entry.key, worker, lambda pipe: pipe.delete(entry.key))


def note_death(queue: Queue, running: RunningEntry, *, worker: str) -> None:
    """Record, in the parent, that an entry has failed with which a process has died; nothing if it ran none."""
    if entry_id := running.take():
        log.warning("rq_entry_failed", rq_job=entry_id, queue=queue.name)
        key = Entry.key_for(entry_id)

        def fail(pipe: Pipeline) -> None:
            pipe.hset(key, "status", JobStatus.FAILED.value)
            pipe.expire(key, REMEMBER_FAILED_S)

        with suppress(*CONNECTION_ERRORS):  # whoever has enqueued it soon does so again
            change_own(queue, key, worker, fail)


def change_own(queue: Queue, key: str, worker: str, change: Callable[[Pipeline], object]) -> None:
    """Change an entry if this worker still has it: one that was enqueued again meanwhile is another one."""
    with queue.connection.pipeline() as pipe, suppress(WatchError):
        pipe.watch(key)  # type: ignore[no-untyped-call]
        if cast(Any, pipe.hget(key, "worker_name")) == worker.encode():
            pipe.multi()
            change(pipe)
            pipe.execute()


def _was_told_to_stop() -> bool:
    """Return whether SIGTERM has come; if not, let it end the process from now on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # what has come is handled before this returns
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
            return True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _take(queue: Queue, linger_s: int, worker: str) -> Entry | None:
    """Take the first entry of a queue that may be run here; None: there is none, or Redis is away.

    Until it is `started`, it is in RQ's intermediate queue, as entries are that RQ takes.
    """
    redis, source, intermediate = queue.connection, queue.key, queue.intermediate_queue_key
    with suppress(*CONNECTION_ERRORS):
        while raw := redis.blmove(source, intermediate, linger_s) if linger_s else redis.lmove(source, intermediate):
            raw = cast(Any, raw)  # bytes, whatever redis-py's annotations say
            entry = _fetch(queue, raw)
            is_ours = entry is not None and entry.requested_job_id() is not None
            with redis.pipeline(transaction=False) as pipe:
                if entry is not None and is_ours:
                    pipe.hset(entry.key, mapping={"status": JobStatus.STARTED.value, "worker_name": worker})
                    pipe.expire(entry.key, _EXPIRES_S)
                elif entry is not None:
                    entry.report_refused(entry.id, "it asks for what isn't done here")
                    pipe.delete(entry.key)
                pipe.lrem(intermediate, 1, raw)
                pipe.execute()
            if is_ours:
                return entry
    return None


def _fetch(queue: Queue, raw: bytes) -> Entry | None:
    """Return the entry with an id that was read from a queue; None: it is gone, or no id of an entry of ours."""
    try:
        entry_id = raw.decode()
    except UnicodeDecodeError:
        entry_id = ""
    if not entry_id or len(raw) > _LONGEST_ID:
        entry_class = cast("type[Entry]", queue.job_class)
        entry_class.report_refused(repr(raw), f"its id is no text of at most {_LONGEST_ID} bytes")
        return None
    return cast("Entry | None", queue.fetch_job(entry_id))
