"""Cuts a stream of listed files into mini-batches of a fixed number of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

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
