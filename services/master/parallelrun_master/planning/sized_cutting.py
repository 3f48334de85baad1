"""Cuts a stream of listed files into mini-batches whose size is decided as each of them is cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from parallelrun_core.storage.interface import Page
from parallelrun_core.wire.message import encode_files
from parallelrun_master.planning.cutting import Cut, Encode


class Sizes(Protocol):
    def next(self, known_files: int, *, has_more: bool, is_last: bool) -> int | None:
        """Return how many files the next mini-batch gets of those that are known; 0: none yet; None: more are to be
        known first, which is only said while the input has more.

        Args:
            is_last: no other input follows.
        """
        ...


class Found:
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
    listing, backlog, has_more = iter(pages), Found(), True
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
