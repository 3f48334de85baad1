"""Cuts a stream of listed files into mini-batches of a fixed number of files, or of one that is decided on the way."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import msgspec

from parallelrun_core.storage.interface import Page
from parallelrun_core.wire.message import encode_files
from parallelrun_master.planning.seen_files import SeenFiles


class KeyedFiles(NamedTuple):
    """The files of one combination of values of the partition keys."""

    values: tuple[str | None, ...]
    groups: list[Page]


class Cut(msgspec.Struct, frozen=True, gc=False):
    """A mini-batch: its full message and how many items it has."""

    raw: bytes
    items: int


Encode = Callable[[list[Page], int], bytes]
"""Encodes groups of files, and how many these are, as the full message."""


def cut(pages: Iterable[Page], size: int, encode: Encode = encode_files) -> Iterator[Cut | None]:
    """Yield mini-batches of `size` files, in order, and None for a page without any; the last one may be smaller."""
    groups: list[Page] = []
    items = 0
    for folder, names in pages:
        if not names:
            yield None
        at = 0
        while at < len(names):
            part = names[at : at + size - items]
            at += len(part)
            items += len(part)
            groups.append((folder, part))
            if items == size:
                yield Cut(encode(groups, items), items)
                groups, items = [], 0
    if groups:
        yield Cut(encode(groups, items), items)


def without_known(pages: Iterable[Page], seen_files: SeenFiles) -> Iterator[Page]:
    """Leave out the files that the manifest has already: for a leader that continues another's listing.

    A page of which nothing is left is yielded all the same, so that others get their turn however many there are. A
    file that is listed twice is there twice, so a known file is left out as often as it is known.
    """
    for folder, names in pages:
        yield folder, seen_files.take(folder, names)


def by_keys(pages: Iterable[Page], values_of: Callable[[bytes], tuple[str | None, ...]]) -> Iterator[KeyedFiles | None]:
    """All files, together with those that have the same values of the keys; sorted by these, missing ones first.

    Yields None for each page, until all have been listed.
    """
    by_values: dict[tuple[str | None, ...], list[Page]] = {}
    for folder, names in pages:
        for name in names:
            groups = by_values.setdefault(values_of(os.path.join(folder, name)), [])
            if groups and groups[-1][0] == folder:
                groups[-1][1].append(name)
            else:
                groups.append((folder, [name]))
        yield None
    keyed = [KeyedFiles(values, groups) for values, groups in by_values.items()]
    yield from sorted(keyed, key=lambda each: [(value is not None, value or "") for value in each.values])


class Sizes(Protocol):
    def next(self, known_files: int, *, has_more: bool, is_last: bool) -> int | None:
        """Return how many files the next mini-batch gets of those that are known; 0: none yet; None: more are to be
        known first, which is only said while the input has more.

        Args:
            is_last: no other input follows.
        """
        ...


class UncutFiles:
    """Files that are listed, and in no mini-batch yet."""

    def __init__(self) -> None:
        self.count = 0
        self._pages: deque[Page] = deque()
        self._at = 0
        """How many of the first page are gone."""

    def add(self, page: Page) -> None:
        if page[1]:
            self._pages.append(page)
            self.count += len(page[1])

    def take(self, count: int) -> list[Page]:
        """The first ones, of which there are so many."""
        self.count -= count
        groups: list[Page] = []
        while count:
            folder, names = self._pages[0]
            part = names[self._at : self._at + count]
            groups.append((folder, part))
            count -= len(part)
            self._at += len(part)
            if self._at == len(names):
                self._pages.popleft()
                self._at = 0
        return groups


def cut_in_sizes(
    pages: Iterable[Page], sizes: Sizes, encode: Encode = encode_files, *, is_last: bool = True
) -> Iterator[Cut | None]:
    """Yield mini-batches of as many files as asked for, in order, and None for each page and while there is to be none.

    Args:
        is_last: no other input follows.
    """
    listing, backlog, has_more = iter(pages), UncutFiles(), True
    while has_more or backlog.count:
        size = sizes.next(backlog.count, has_more=has_more, is_last=is_last)
        if size:
            yield Cut(encode(backlog.take(size), size), size)
            continue
        if size is None:
            page = next(listing, None)
            has_more = page is not None
            backlog.add(page or (b"", []))
        yield None
