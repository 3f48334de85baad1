"""Streams the files of an input: a folder at any depth, one file, or a glob pattern. A pipe or a socket is not a file.

A folder of up to 50,000 entries comes in the order of its paths; a larger one in the order of the directory itself,
so that the first mini-batch doesn't wait for the last file. `os.scandir` tells files from folders without asking
for each one's status, which is what makes a million files a matter of a third of a second.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fnmatch import translate
from itertools import islice

from parallelrun_core.errors import InvalidInput
from parallelrun_core.patterns import has_wildcard, split_pattern

SORTED_UP_TO = 50_000
_CHUNK = 1000

Chunk = tuple[bytes, list[bytes]]
"""A folder and some names of files in it."""


class Listing:
    """The files of one input, in chunks. `is_sorted` says, at the end, whether all of it came by path.

    Args:
        path: a folder, a file, or a glob pattern.
        pattern: names below the folder `path`, with wildcards; then `path` itself is taken literally.
    """

    def __init__(self, path: str, pattern: Sequence[str] = ()) -> None:
        self.path = path
        self._below = list(pattern)
        self.is_sorted = True

    def __iter__(self) -> Iterator[Chunk]:
        """Yield `(folder, names)`.

        Raises:
            OSError: the input, or a folder in it, can't be read.
            InvalidInput: it is neither a file nor a folder.
        """
        if self._below:
            start = os.fsencode(os.path.normpath(self.path))
            yield from self._walk(start, _Pattern(self._below), frozenset({0}), frozenset())
        elif has_wildcard(self.path) and not os.path.lexists(self.path):
            root, pattern = split_pattern(self.path)
            yield from self._walk(os.fsencode(root), _Pattern(pattern), frozenset({0}), frozenset())
        elif os.path.isdir(self.path):
            yield from self._walk(os.fsencode(os.path.normpath(self.path)), None, frozenset(), frozenset())
        else:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise InvalidInput(f"{self.path} is neither a file nor a folder")
            folder, name = os.path.split(os.fsencode(self.path))
            yield folder, [name]

    def _walk(
        self, folder: bytes, pattern: _Pattern | None, states: frozenset[int], above: frozenset[tuple[int, int]]
    ) -> Iterator[Chunk]:
        try:
            identity = os.stat(folder)
            scan = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            if not above:
                raise
            return  # it disappeared while the folder above it was listed
        here = (identity.st_dev, identity.st_ino)
        below = above | {here}
        with scan:
            if here in above:
                return  # a link that leads back to a folder above it
            first = list(islice(scan, SORTED_UP_TO + 1))
            if len(first) <= SORTED_UP_TO:
                yield from self._sorted(folder, first, pattern, states, below)
                return
            self.is_sorted = False
            folders: list[bytes] = []
            while first:
                names, more = _parted(first, pattern, states)
                folders += more
                if names:
                    yield folder, names
                first = list(islice(scan, _CHUNK))
        for name in sorted(folders):
            yield from self._enter(folder, name, pattern, states, below)

    def _sorted(
        self,
        folder: bytes,
        entries: list[os.DirEntry[bytes]],
        pattern: _Pattern | None,
        states: frozenset[int],
        below: frozenset[tuple[int, int]],
    ) -> Iterator[Chunk]:
        names, folders = _parted(entries, pattern, states)
        names.sort()
        at = 0
        # With '/' after the folders' names, the order is that of whole paths.
        for name in sorted([name + b"/" for name in folders]):
            end = bisect_left(names, name, at)
            if at < end:
                yield folder, names[at:end]
                at = end
            yield from self._enter(folder, name[:-1], pattern, states, below)
        if at < len(names):
            yield folder, names[at:]

    def _enter(
        self,
        folder: bytes,
        name: bytes,
        pattern: _Pattern | None,
        states: frozenset[int],
        below: frozenset[tuple[int, int]],
    ) -> Iterator[Chunk]:
        if pattern is not None:
            states = pattern.enter(states, name)
            if not states:
                return
        yield from self._walk(os.path.join(folder, name), pattern, states, below)


def _parted(
    entries: list[os.DirEntry[bytes]], pattern: _Pattern | None, states: frozenset[int]
) -> tuple[list[bytes], list[bytes]]:
    """The names of the files that are accepted, and those of all folders; what holds no data is neither.

    A pipe that is opened to be read waits for a writer, perhaps for ever.
    """
    files: list[bytes] = []
    folders: list[bytes] = []
    for entry in entries:
        try:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir():
                folders.append(entry.name)
            elif entry.is_symlink():
                files.append(entry.name)
        except OSError:  # a link to itself: the script may decide what to do with it
            files.append(entry.name)
    if pattern is not None:
        files = [name for name in files if pattern.accepts(states, name)]
    return files, folders


class _Pattern:
    """A glob below a folder, matched one path segment at a time: a state is how many segments have matched."""

    def __init__(self, segments: list[str]) -> None:
        self._segments = [None if segment == "**" else re.compile(translate(segment)) for segment in segments]

    def _reachable(self, states: frozenset[int]) -> set[int]:
        """The states, and those after a `**`, which may match nothing."""
        found = set(states)
        for state in states:
            following = state
            while following < len(self._segments) and self._segments[following] is None:
                following += 1
                found.add(following)
        return found

    def enter(self, states: frozenset[int], name: bytes) -> frozenset[int]:
        """The states after going into a folder; none when nothing below can match."""
        after = set()
        for state in self._reachable(states):
            if state >= len(self._segments):
                continue
            segment = self._segments[state]
            if segment is None:
                after.add(state)
            elif segment.match(os.fsdecode(name)):
                after.add(state + 1)
        return frozenset(after)

    def accepts(self, states: frozenset[int], name: bytes) -> bool:
        """Whether a file of this name matches to the end."""
        last = len(self._segments) - 1
        for state in self._reachable(states):
            if state == last:
                segment = self._segments[state]
                if segment is None or segment.match(os.fsdecode(name)):
                    return True
        return False
