"""The histories of the jobs that somebody has looked at lately, as many as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder
    from parallelrun_core.tries.history import History

MOST_BYTES: Final = 256 << 20
"""Of all of them together; about five million tries. One alone may have more, up to `MOST_TRIES`."""
BUDGET_S: Final = 0.25
"""How long one request reads on: so its answer comes soon, and says how much is still missing."""


class Histories:
    """Safe to share between threads."""

    def __init__(self, most_bytes: int = MOST_BYTES, budget_s: float = BUDGET_S) -> None:
        self._most_bytes = most_bytes
        self._budget_s = budget_s
        self._lock = Lock()
        self._histories: OrderedDict[str, History] = OrderedDict()

    def of(self, folder: JobFolder) -> History:
        """The history of a job, with what is new in it, as far as that can be read in a short time.

        Raises:
            NotFound: there is no such job.
            CorruptLog, NewerSchema: its records can't be read.
            Conflict: it has too many tries.
        """
        # numpy takes longer to import than most servers need to start.
        from parallelrun_core.tries.history import History
        from parallelrun_core.tries.snapshot import keep, load

        record = folder.record()
        with self._lock:
            history = self._histories.pop(folder.job_id, None)
            if history is None or history.record != record:
                history = History(folder, record)
            self._histories[folder.job_id] = history
        load(history)
        history.refresh(self._budget_s)
        keep(history)
        with self._lock:
            while len(self._histories) > 1 and sum(each.bytes for each in self._histories.values()) > self._most_bytes:
                self._histories.popitem(last=False)
        return history
