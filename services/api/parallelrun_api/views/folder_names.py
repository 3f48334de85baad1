"""The names in folders, sorted, in little memory, and not from the beginning for each page.

A job may have created millions of files. Whoever wants them by name has to look at all of them; so a look brings the
names of several pages, and those that follow are remembered until something in their folder changes.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Final

MAX_NAMES: Final = 50_000
"""Names in memory for one folder; more than a page has."""
_CACHED_FOLDERS: Final = 4
"""Folders whose names are remembered."""
_SETTLED_NS: Final = 1_000_000_000
"""A folder that was changed less than this ago may change once more without another time of modification."""


@dataclass(frozen=True)
class _Stretch:
    """All names of a folder from `first` to the last one here."""

    first: str
    names: list[str]
    is_last: bool
    """No names follow."""
    changed: tuple[int, int]
    """Time when the folder was changed, before it was read."""

    def covers(self, first: str) -> bool:
        """Return whether it has the names from `first` on, or at least one of them."""
        return self.first <= first and (self.is_last or first <= self.names[-1])


class FolderNames:
    """Reads the names in folders. Safe to share between threads."""

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._stretches: OrderedDict[tuple[int, int], _Stretch] = OrderedDict()
        self._lock = Lock()

    def after(self, folder: int, first: str) -> Iterator[str]:
        """The names in an open folder, sorted, from `first` on: of files, and of folders with a `/` at the end.

        With the `/`, paths below the folder are in order, too, if they are taken in the order of the names.
        """
        while True:
            stretch = self._stretch(folder, first)
            yield from islice(stretch.names, bisect_left(stretch.names, first), None)
            if stretch.is_last:
                return
            first = stretch.names[-1] + "\0"  # the smallest text behind it

    def _stretch(self, folder: int, first: str) -> _Stretch:
        status = os.fstat(folder)
        identity, changed = (status.st_dev, status.st_ino), (status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            cached = self._stretches.get(identity)
            if cached and cached.changed == changed and cached.covers(first):
                self._stretches.move_to_end(identity)
                return cached
        is_settled = time.time_ns() - max(changed) > _SETTLED_NS
        names = _smallest(folder, first, self._max_names)
        read = _Stretch(first, names, len(names) < self._max_names, changed)
        if is_settled and len(names) > self._max_names // 5:  # few are read in no time
            with self._lock:
                self._stretches[identity] = read
                self._stretches.move_to_end(identity)
                while len(self._stretches) > _CACHED_FOLDERS:
                    self._stretches.popitem(last=False)
        return read


def _smallest(folder: int, first: str, most: int) -> list[str]:
    """The first `most` names from `first` on, never with more than twice as many in memory."""
    names: list[str] = []
    last = ""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if (last and name >= last) or (name < first and not first.startswith(name)):
                continue  # most of them; with a mark or without it, they are not here
            name = _marked(entry)
            if name and name >= first and (not last or name < last):
                names.append(name)
                if len(names) == 2 * most:
                    names.sort()
                    del names[most:]
                    last = names[-1]
    names.sort()
    del names[most:]
    return names


def _marked(entry: os.DirEntry[str]) -> str:
    """Its name, marked if it is a folder; empty when it is neither that nor a file."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return f"{entry.name}/"
        return entry.name if entry.is_file(follow_symlinks=False) else ""
    except OSError:
        return ""  # gone since it was listed
