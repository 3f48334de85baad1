"""Logs of a job as one, for clients that follow a single log. Nothing of them is in memory but what is being sent.

Only lines at the end of the last of them are new when it is asked for again.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Final

from parallelrun_api.views.files import ServedFolder
from parallelrun_core.errors import NotFound, UnsafePath

_MOST_FILES: Final = 1000
"""Of the overview of a job there is one for each hour."""
_MOST_BYTES: Final = 128 << 20
"""Of all: workers may write as much each."""
_GOES_ON: Final = b"\n... there is more: read the logs of each worker.\n"


class JoinedLogs:
    """The logs of some name, one after the other, as long as they are now.

    Args:
        logs: a job's.
        pattern: of the paths of those that are taken.
    """

    def __init__(self, logs: ServedFolder, pattern: re.Pattern[str]) -> None:
        paths = [entry.path for entry in logs.files() if pattern.fullmatch(entry.path)][-_MOST_FILES:]
        statuses = {path: status for path in paths if (status := _status_of(logs, path)) is not None}
        self._logs = logs
        self._paths: Sequence[str] = list(statuses)
        self._ends = list(accumulate(status.st_size for status in statuses.values()))
        self._all_bytes = self._ends[-1] if self._ends else 0
        self._joined_bytes = min(self._all_bytes, _MOST_BYTES)
        self.size = self._joined_bytes + (len(_GOES_ON) if self._joined_bytes < self._all_bytes else 0)
        self.modified_ns = max((status.st_mtime_ns for status in statuses.values()), default=0)

    def read(self, count: int, begin: int) -> bytes:
        """Return at most so many bytes from this one on. What can't be read any more is spaces."""
        if begin >= self._joined_bytes:
            return _GOES_ON[begin - self._joined_bytes :][:count]
        number = bisect_right(self._ends, begin)
        before = self._ends[number - 1] if number else 0
        count = min(count, self._ends[number] - begin, self._joined_bytes - begin)
        with suppress(NotFound, UnsafePath), open(self._logs.open(self._paths[number]), "rb", buffering=0) as file:
            data = os.pread(file.fileno(), count, begin - before)
            return data.ljust(count)
        return b" " * count

    def last_lines(self, _count: int) -> int:
        """Return where the last lines begin: nobody asks for these, so all are."""
        return 0

    def close(self) -> None:
        """Nothing is open between two reads."""


def _status_of(logs: ServedFolder, path: str) -> os.stat_result | None:
    """Return the status of a log; None: it can't be read, or is also a file of others."""
    with suppress(NotFound, UnsafePath), open(logs.open(path), "rb", buffering=0) as file:
        return os.fstat(file.fileno())
    return None
