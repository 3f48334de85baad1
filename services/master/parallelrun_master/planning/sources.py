"""Streams the files that an input's plan names: its path, or the entries of its MLTable file, in their order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain

from parallelrun_core.mltable.plan import InputPlan
from parallelrun_core.storage.interface import Listing, Page
from parallelrun_core.storage.stores import storage_of


class Sources:
    """The files of one input, in pages, without its MLTable file. `is_sorted` as of `Listing`."""

    def __init__(self, plan: InputPlan) -> None:
        self.is_sorted = True
        self._delta = plan if plan.kind == "delta_lake" else None
        self._listings: list[Listing] = [
            storage_of(source.path).files(source.path, source.pattern) for source in plan.sources
        ] or [storage_of(plan.path).files(plan.path)]
        self._left_out = os.path.split(os.fsencode(plan.left_out))

    def __iter__(self) -> Iterator[Page]:
        """Yield `(folder, names)`.

        Raises:
            OSError: something that is named, or a folder in it, can't be read.
            InvalidInput: a Delta table can't be read.
        """
        if self._delta is not None:
            from parallelrun_master.planning import delta

            yield from ((folder, [name]) for folder, name in map(os.path.split, delta.files_of(self._delta)))
            return
        left_out_folder, left_out = self._left_out
        for listing in self._listings:
            for folder, names in listing:
                data = [name for name in names if name != left_out] if folder == left_out_folder else names
                if data:
                    yield folder, data
            self.is_sorted = self.is_sorted and listing.is_sorted


def paths_in(pages: Iterable[Page]) -> Iterator[bytes]:
    """Whole paths."""
    return chain.from_iterable([os.path.join(folder, name) for name in names] for folder, names in pages)
