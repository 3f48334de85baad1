"""Cuts a stream of listed files into mini-batches of a number of files each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from parallelrun_core.message import encode_files
from parallelrun_master.listing import Chunk


class Cut(NamedTuple):
    """One mini-batch: its full message and how many items it has."""

    raw: bytes
    items: int


def cut(chunks: Iterable[Chunk], size: int) -> Iterator[Cut]:
    """Yield mini-batches of `size` files, in order; the last one may be smaller."""
    groups: list[Chunk] = []
    items = 0
    for folder, names in chunks:
        at = 0
        while at < len(names):
            taken = names[at : at + size - items]
            at += len(taken)
            items += len(taken)
            groups.append((folder, taken))
            if items == size:
                yield Cut(encode_files(groups, items), items)
                groups, items = [], 0
    if groups:
        yield Cut(encode_files(groups, items), items)


def without_known(chunks: Iterable[Chunk], known: dict[bytes, set[bytes]]) -> Iterator[Chunk]:
    """Leave out the files that the manifest has already: for a leader that goes on with another's listing."""
    for folder, names in chunks:
        seen = known.get(folder)
        fresh = names if seen is None else [name for name in names if name not in seen]
        if fresh:
            yield folder, fresh
