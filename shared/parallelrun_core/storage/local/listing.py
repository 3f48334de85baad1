"""Streams the files of an input: a folder at any depth, one file, or a glob pattern. A pipe or a socket is not a file.

A folder of up to 50,000 entries comes in the order of its paths; a larger one in the order of the directory itself,
so that the first mini-batch doesn't wait for the last file. `os.scandir` tells files from folders without asking
for each one's status, which is what makes a million files a matter of a third of a second.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.globs import START, Pattern, States, split_existing
from parallelrun_core.storage.interface import Page

SORTED_UP_TO: Final = 50_000
_PAGE: Final = 1000

Identities = frozenset[tuple[int, int]]
"""Device and inode of the folders on the way to one, by which a link that leads back is recognized."""


class LocalListing:
    """The files of one input, in pages (see `interface.Listing`).

    Args:
        path: a folder, a file, or a glob pattern.
        below: names below the folder `path`, with wildcards; then `path` itself is taken literally.
        sorted_up_to: the largest number of entries of a folder whose files come sorted.
        page: how many entries are read at once of a larger one.
    """

    versions: Final = None
    """Asking for them would cost a call for each file."""

    def __init__(
        self, path: str, below: Sequence[str] = (), *, sorted_up_to: int = SORTED_UP_TO, page: int = _PAGE
    ) -> None:
        self.path = path
        self.is_sorted = True
        self._below = list(below)
        self._sorted_up_to = sorted_up_to
        self._page = page

    def __iter__(self) -> Iterator[Page]:
        if self._below:
            start, below = os.path.normpath(self.path), self._below
        else:
            start, below = split_existing(self.path)
        if below:
            yield from self._walk(os.fsencode(start), Pattern(below), START, frozenset())
        elif os.path.isdir(self.path):
            yield from self._walk(os.fsencode(os.path.normpath(self.path)), None, frozenset(), frozenset())
        else:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise InvalidInput(f"{self.path} is neither a file nor a folder")
            folder, name = os.path.split(os.fsencode(self.path))
            yield folder, [name]

    def _walk(self, folder: bytes, pattern: Pattern | None, states: States, above: Identities) -> Iterator[Page]:
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
            first = list(islice(scan, self._sorted_up_to + 1))
            if len(first) <= self._sorted_up_to:
                yield from self._sorted(folder, first, pattern, states, below)
                return
            self.is_sorted = False
            folders: list[bytes] = []
            while first:
                names, more = parted(first, pattern, states)
                folders += more
                if names:
                    yield folder, names
                first = list(islice(scan, self._page))
        for name in sorted(folders):
            yield from self._enter(folder, name, pattern, states, below)

    def _sorted(
        self,
        folder: bytes,
        entries: list[os.DirEntry[bytes]],
        pattern: Pattern | None,
        states: States,
        below: Identities,
    ) -> Iterator[Page]:
        names, folders = parted(entries, pattern, states)
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
        pattern: Pattern | None,
        states: States,
        below: Identities,
    ) -> Iterator[Page]:
        if pattern is not None:
            states = pattern.enter(states, name)
            if not states:
                return
        yield from self._walk(os.path.join(folder, name), pattern, states, below)


def parted(
    entries: list[os.DirEntry[bytes]], pattern: Pattern | None, states: States
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
        files = [name for name in files if pattern.is_match(states, name)]
    return files, folders
