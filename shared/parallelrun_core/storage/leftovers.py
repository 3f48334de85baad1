"""Files that programs leave in a folder beside its data, and that a job leaves out.

Of a table, that is every name which begins with `_` or `.`, as for Spark and Arrow, unless it is a key of a path
(`_year=2026`). Of a list of files it is only what is known for it: cameras write `_DSC0001.JPG`. A file or folder that
is named is always read, also by a pattern: one whose part for this name doesn't begin with a wildcard.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from parallelrun_core.storage.globs import START, Pattern

_MOST_NAMED: Final = 8
_KEY_OF_PATH: Final = re.compile(rb"_[^=]+=")
_LITTER: Final = re.compile(
    rb"\.DS_Store|Thumbs\.db|desktop\.ini|.*:Zone\.Identifier|\.~lock\..*|_SUCCESS|\..*\.crc", re.DOTALL
)
_BESIDE: Final = b"._"
"""How macOS begins the name of a file that has what another file system can't keep of the one beside it."""
_FIRST: Final = (b"\0.", b"\0_", b"\0Thumbs.db", b"\0desktop.ini", b":Zone.Identifier\0")
"""With a NUL before and behind each name, every name that may be left out has one of these."""
_NOT_WHOLE: Final = (b".tmp", b".part", b".partial", b".filepart", b".crdownload", b".bak", b".orig", b"~", b"#")
"""How names end of what is still being written or downloaded, and of what an editor keeps of a file before a change."""


def is_hidden(name: bytes) -> bool:
    """Return whether a table leaves out a file or folder of this name."""
    return name.startswith(b".") or (name.startswith(b"_") and not _KEY_OF_PATH.match(name))


def _may_be_litter(name: bytes) -> bool:
    return name.startswith(_BESIDE) or _LITTER.fullmatch(name) is not None


def is_litter(name: bytes, siblings: Iterable[bytes]) -> bool:
    """Return whether a file is known not to be data.

    Args:
        siblings: names of other files in its folder.
    """
    return _LITTER.fullmatch(name) is not None or (name.startswith(_BESIDE) and name[2:] in siblings)


@dataclass(slots=True)
class LeftoverNames:
    """The number of files of a sort, and the first of their names."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: bytes) -> None:
        """Count one more file."""
        self.count += 1
        if len(self.first) < _MOST_NAMED:
            self.first.append(os.fsdecode(name))

    def __str__(self) -> str:
        """Return the names, as in `_SUCCESS, .a.csv.crc and 7 more`."""
        more = self.count - len(self.first)
        return ", ".join(self.first) + (f" and {more:,} more" if more else "")


class Leftovers:
    """Leaves out of the pages of one listing what isn't data, and counts it.

    Args:
        start: the folder that is listed.
        pattern: names of its pattern below `start`; empty: it is a folder.
        hidden: leave out names that a table leaves out.
        litter: `skip` what is known not to be data, or `warn` of it; otherwise it is like other files.
    """

    def __init__(self, start: bytes, pattern: Iterable[str], *, hidden: bool, litter: str) -> None:
        self._start = start.rstrip(b"/")
        self._names = list(pattern)
        self._hidden = Pattern(self._names or ["**"], is_named=is_hidden) if hidden else None
        self._litter = Pattern(self._names or ["**"], is_named=_may_be_litter)
        self._litter_files = litter if litter in ("skip", "warn") else ""
        self.skipped = LeftoverNames()
        self.kept_litter = LeftoverNames()
        self.markers = LeftoverNames()
        """Objects that only mark a folder, which a listing has left out."""
        self.not_whole = LeftoverNames()
        """Files of a table whose names end as those of files do that are still being written, or are old copies."""

    @property
    def folder(self) -> str:
        return os.fsdecode(self._start) or "/"

    def without(self, folder: bytes, names: list[bytes]) -> list[bytes]:
        """Return the names of a page that are left: the same list, nearly always."""
        if not (self._hidden is not None or self._litter_files) or not folder.startswith(self._start):
            return names  # nothing is left out, or the input is this one file
        joined = b"\0" + b"\0".join(names) + b"\0"
        if self._hidden is not None:
            if any(end + b"\0" in joined for end in _NOT_WHOLE):
                for name in names:
                    if name.endswith(_NOT_WHOLE) and not is_hidden(name):
                        self.not_whole.add(self._below(folder, name))
            if self._is_in_hidden_folder(folder):
                for name in names:
                    self.skipped.add(self._below(folder, name))
                return []
        if not any(first in joined for first in _FIRST):
            return names
        siblings = frozenset(names)
        return [name for name in names if self._is_left(folder, name, siblings)]

    def _is_left(self, folder: bytes, name: bytes, siblings: frozenset[bytes]) -> bool:
        if self._hidden is not None and is_hidden(name) and not self._is_named(self._hidden, folder, name):
            self.skipped.add(self._below(folder, name))
            return False
        if not self._litter_files or not _is_litter(folder, name, siblings):
            return True
        if self._is_named(self._litter, folder, name):
            return True
        (self.skipped if self._litter_files == "skip" else self.kept_litter).add(self._below(folder, name))
        return self._litter_files != "skip"

    def _is_in_hidden_folder(self, folder: bytes) -> bool:
        below = folder[len(self._start) :]
        if b"/_" not in below and b"/." not in below:
            return False
        pattern, states = self._hidden, START
        for name in below.strip(b"/").split(b"/"):
            states = pattern.enter(states, name) if pattern is not None else states
        return not states

    def _is_named(self, pattern: Pattern, folder: bytes, name: bytes) -> bool:
        """Return whether the pattern of the input names this file, and doesn't only match it."""
        if not self._names:
            return False
        states = START
        for above in filter(None, folder[len(self._start) :].split(b"/")):
            states = pattern.enter(states, above)
        return pattern.is_match(states, name)

    def _below(self, folder: bytes, name: bytes) -> bytes:
        return os.path.join(folder, name)[len(self._start) :].lstrip(b"/")


def _is_litter(folder: bytes, name: bytes, siblings: frozenset[bytes]) -> bool:
    if name.startswith(_BESIDE) and name[2:] not in siblings and folder.startswith(b"/"):
        # A large folder comes page by page, in the order of the file system.
        return is_litter(name, siblings) or os.path.lexists(os.path.join(folder, name[2:]))
    return is_litter(name, siblings)
