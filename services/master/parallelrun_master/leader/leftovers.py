"""Leftovers of concatenations that have begun for a job's output, and never published: removed when the job has ended.

Files are beside the output. Uploads to a store are invisible, and paid for: they are asked for in a thread of its own,
because a leader must renew its lease while a store doesn't answer, and the end of a job doesn't wait for one for long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from parallelrun_core.layout import Layout, Logs
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_PATIENCE_S: Final = 20.0
_STEP_S: Final = 0.1
_REMOVAL: Final = "removal"
"""The name of the threads that remove what sessions needed."""


class JobLeftovers:
    """The leftovers of one job.

    Args:
        target: where its output is published.
        alive: called again and again while a store is waited for.
    """

    def __init__(self, target: str, job_id: str, alive: Callable[[], object], log: FilteringBoundLogger) -> None:
        self._target, self._job_id = target, job_id
        self._storage = storage_of(target)
        self._alive, self._log = alive, log
        self._names: Sequence[str] = ()

    def find(self) -> None:
        """Note what is there now; only that is removed."""
        self._names = self._asked(lambda: self._storage.unfinished(self._target, self._job_id))

    def discard(self) -> None:
        """Remove what was noted. What a store doesn't want to remove stays there, as the log says."""
        if self._names:
            self._asked(self._discard)

    def _discard(self) -> Sequence[str]:
        self._storage.discard(self._names)
        return ()

    def _asked(self, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Return what the storage answers; nothing if it is a store that refuses, or takes too long."""
        if not is_url(self._target):
            return ask()
        answer: Future[Sequence[str]] = Future()
        threading.Thread(target=_run, args=(ask, answer), name="leftovers", daemon=True).start()
        until = time.monotonic() + _PATIENCE_S
        while not answer.done() and time.monotonic() < until:
            wait([answer], _STEP_S)
            self._alive()
        try:
            return answer.result(0)
        except Exception as error:
            self._log.warning("uploads_not_removed", output=self._target, error=str(error) or "no answer in time")
            return ()


def remove_what_sessions_needed(layout: Layout, journals: Sequence[str], keys: Sequence[str]) -> None:
    """Begin to remove these journals and keys of a job's sessions, all of which have left, and the folders for what
    scripts print and write, if nothing is in them: a later generation may have others by then. What can't be removed
    stays, and does no harm. To be waited for by `wait_for_removals` at the end of the process.

    The leader goes on with its next job meanwhile: where a disk is told of each block that is free (ext4 without a
    journal, `discard`), that takes 10 ms under load, a quarter of it for the journals.
    """
    threading.Thread(target=_remove, args=(layout, journals, keys), name=_REMOVAL, daemon=True).start()


def wait_for_removals() -> None:
    """Wait until all that this process has begun to remove is gone."""
    for thread in threading.enumerate():
        if thread.name == _REMOVAL:
            thread.join()


def _remove(layout: Layout, journals: Sequence[str], keys: Sequence[str]) -> None:
    for folder, names in ((layout.journals, journals), (layout.keys, keys)):
        with suppress(OSError):
            for name in names:
                (folder / name).unlink()
            folder.rmdir()
    with suppress(OSError):
        user = Logs(layout.logs).user
        for folder in [*user.iterdir(), user]:
            with suppress(OSError):  # something is in it
                folder.rmdir()


def _run(ask: Callable[[], Sequence[str]], answer: Future[Sequence[str]]) -> None:
    try:
        answer.set_result(ask())
    except Exception as error:
        answer.set_exception(error)
