"""Streams the files that an input's plan names: its path, or the entries of its MLTable file, in their order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain

from parallelrun_core.mltable.plan import InputPlan
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.listing import Chunk, Listing


class Sources:
    """The files of one input, in chunks, without its MLTable file. `is_sorted` as of `Listing`."""

    def __init__(self, plan: InputPlan) -> None:
        self.is_sorted = True
        self._plan = plan
        self._listings = [Listing(source.path, source.pattern) for source in plan.sources] or [Listing(plan.path)]
        self._left_out = os.path.split(os.fsencode(plan.left_out))

    def __iter__(self) -> Iterator[Chunk]:
        """Yield `(folder, names)`.

        Raises:
            OSError: something that is named, or a folder in it, can't be read.
            InvalidInput: a table that lists its own files can't be read.
        """
        own = format_of(self._plan.kind).files(self._plan) if self._plan.is_table else None
        if own is not None:
            yield from ((folder, [name]) for folder, name in map(os.path.split, own))
            return
        left_out_folder, left_out = self._left_out
        for listing in self._listings:
            for folder, names in listing:
                kept = [name for name in names if name != left_out] if folder == left_out_folder else names
                if kept:
                    yield folder, kept
            self.is_sorted = self.is_sorted and listing.is_sorted


def paths_in(chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """Whole paths."""
    return chain.from_iterable([os.path.join(folder, name) for name in names] for folder, names in chunks)
