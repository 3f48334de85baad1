"""Streams the files of an input: a folder at any depth, one file, or a glob pattern. A pipe or a socket is not a file.

A folder of up to 50,000 entries comes in the order of its paths; a larger one in the order of the directory itself,
so that the first mini-batch doesn't wait for the last file. `os.scandir` tells files from folders without asking
for each one's status, which is what makes a million files a matter of a third of a second.

A rule is asked about each folder that is opened and each file that is a link, and never about an ordinary file: it is
where its folder is.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.globs import START, Pattern, States, split_existing
from parallelrun_core.storage.interface import Page
from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.storage.path_rule import PathRule

SORTED_UP_TO: Final = 50_000
_PAGE: Final = 1000

Identities = frozenset[tuple[int, int]]
"""Device and inode of the folders on the way to one, by which a link that leads back is recognized."""


class LocalListing:
    """The files of one input, in pages (see `interface.Listing`).

    Args:
        path: a folder, a file, or a glob pattern.
        below: names below the folder `path`, with wildcards; then `path` itself is taken literally.
        rule: refuses what links may not lead to; None: links lead anywhere.
        sorted_up_to: the largest number of entries of a folder whose files come sorted.
        page: how many entries are read at once of a larger one.
    """

    versions: Final = None
    """Asking for them would cost a call for each file."""

    def __init__(
        self,
        path: str,
        below: Sequence[str] = (),
        rule: PathRule | None = None,
        *,
        sorted_up_to: int = SORTED_UP_TO,
        page: int = _PAGE,
    ) -> None:
        self.path = path
        self.markers = LeftoverNames()
        self._rule = rule
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
            if self._rule is not None:
                self._rule.check(os.fsencode(self.path))
            folder, name = os.path.split(os.fsencode(self.path))
            yield folder, [name]

    def _walk(self, folder: bytes, pattern: Pattern | None, states: States, above: Identities) -> Iterator[Page]:
        names: list[bytes] = []
        folders: list[bytes] = []
        is_large = False
        try:
            with opened_folder(folder, self._rule) as (at, here), os.scandir(at) as scan:
                if here in above:
                    return  # a link that leads back to a folder above it
                page_size = self._sorted_up_to + 1
                while some := list(islice(scan, page_size)):
                    names, more = parted(folder, some, pattern, states, self._rule)
                    folders += more
                    is_large = is_large or len(some) > self._sorted_up_to
                    if not is_large:
                        break
                    page_size = self._page
                    if names:
                        yield folder, names
        except (FileNotFoundError, NotADirectoryError):
            if not above:
                raise
            return  # it disappeared while the folder above it was listed
        below = above | {here}
        if not is_large:
            yield from self._sorted(folder, (names, folders), pattern, states, below)
            return
        self.is_sorted = False
        for name in sorted(folders):
            yield from self._enter(folder, name, pattern, states, below)

    def _sorted(
        self,
        folder: bytes,
        content: tuple[list[bytes], list[bytes]],
        pattern: Pattern | None,
        states: States,
        below: Identities,
    ) -> Iterator[Page]:
        names, folders = content
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


@contextmanager
def opened_folder(folder: bytes, rule: PathRule | None) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Open a folder; a path by which it is found while it is open, even if it is replaced, and its device and inode.

    Raises:
        OSError: it can't be opened.
        UnsafePath: the rule refuses it.
    """
    fd = os.open(os.fsdecode(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # errors name it as people do
    try:
        if rule is not None:
            rule.check_opened(fd, folder)
        status = os.fstat(fd)
        yield b"/proc/self/fd/%d" % fd, (status.st_dev, status.st_ino)
    finally:
        os.close(fd)


def parted(
    folder: bytes,
    entries: list[os.DirEntry[bytes]],
    pattern: Pattern | None,
    states: States,
    rule: PathRule | None = None,
) -> tuple[list[bytes], list[bytes]]:
    """The names of the files that are accepted, and those of all folders; what holds no data is neither.

    A pipe that is opened to be read waits for a writer, perhaps for ever.

    Args:
        folder: the one that the entries are in.

    Raises:
        UnsafePath: the rule refuses what a link leads to that is among the accepted files.
    """
    files: list[bytes] = []
    folders: list[bytes] = []
    links: list[bytes] = []
    for entry in entries:
        try:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir():
                folders.append(entry.name)
            elif entry.is_symlink() and _may_hold_data(entry):
                links.append(entry.name)
        except OSError:  # a link to itself: the script may decide what to do with it
            links.append(entry.name)
    if pattern is not None:
        files = [name for name in files if pattern.is_match(states, name)]
        links = [name for name in links if pattern.is_match(states, name)]
    if rule is not None:
        for name in links:
            _check_link(os.path.join(folder, name), rule)
    return files + links if links else files, folders


def _may_hold_data(link: os.DirEntry[bytes]) -> bool:
    """Return whether a link leads to a file, or to what is not there (yet)."""
    try:
        return stat.S_ISREG(link.stat().st_mode)
    except FileNotFoundError:
        return True


def _check_link(path: bytes, rule: PathRule) -> None:
    try:
        rule.check(path)
    except OSError as error:
        if error.errno != errno.ELOOP:  # one that leads to itself leads nowhere else
            raise
