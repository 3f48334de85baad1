"""Streams the files that an input's plan names: its path, or the entries of its MLTable file, in their order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain

from parallelrun_core.errors import UnsafePath
from parallelrun_core.mltable.document import TableSource
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.storage.interface import Listing, Page
from parallelrun_core.storage.leftovers import Leftovers
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.versions import Versions


class Sources:
    """The files of one input, in pages, without its MLTable file. `is_sorted` as of `Listing`.

    Args:
        rule: what may be listed; None: anything.
        versions: to note those of its files, if its storage has them.
    """

    def __init__(self, plan: InputPlan, rule: PathRule | None = None, versions: Versions | None = None) -> None:
        self._versions = versions
        self.is_sorted = True
        self._plan = plan
        self._rule = rule
        self._listings: list[tuple[Listing, Leftovers]] = [
            (storage_of(source.path).files(source.path, source.pattern, rule), _leftovers(plan, source))
            for source in plan.sources or [TableSource("", plan.path)]
        ]
        self._left_out = os.path.split(os.fsencode(plan.left_out))

    @property
    def leftovers(self) -> list[Leftovers]:
        """Return what was left out, or is no data, of each of the listings; final when the iteration ends."""
        return [leftovers for _, leftovers in self._listings]

    def __iter__(self) -> Iterator[Page]:
        """Yield `(folder, names)`.

        Raises:
            OSError: something that is named, or a folder in it, can't be read.
            InvalidInput: a table that lists its own files can't be read, or the rule refuses a file.
        """
        table_files = format_of(self._plan.kind).files(self._plan, self._rule) if self._plan.is_table else None
        if table_files is not None:
            for path in table_files:
                if self._rule is not None:
                    self._check(path, self._rule)
                folder, name = os.path.split(path)
                yield folder, [name]
            return
        left_out_folder, left_out = self._left_out
        extension = os.fsencode(self._plan.read.file_extension) if self._plan.read is not None else b""
        for listing, leftovers in self._listings:
            for folder, names in self._versions.noted(listing) if self._versions is not None else listing:
                data = [name for name in names if name != left_out] if folder == left_out_folder else names
                data = leftovers.without(folder, data)
                data = [name for name in data if name.endswith(extension)] if extension else data
                if data:
                    yield folder, data
            leftovers.markers = listing.markers
            self.is_sorted = self.is_sorted and listing.is_sorted

    @staticmethod
    def _check(path: bytes, rule: PathRule) -> None:
        if path.startswith(b"/"):
            rule.check(path)
        elif (trouble := storage_of(path).place_trouble(os.fsdecode(path), rule)) is not None:
            raise UnsafePath.at("", *trouble)


def _leftovers(plan: InputPlan, source: TableSource) -> Leftovers:
    storage = storage_of(source.path)
    start, pattern = (source.path, list(source.pattern)) if source.pattern else storage.split(source.path)
    is_named = source.kind == "file"
    hidden = plan.is_table and plan.hidden_files == "skip" and not is_named
    litter = "skip" if hidden and plan.litter_files == "warn" else plan.litter_files  # it is no table, either
    return Leftovers(
        os.fsencode(storage.identity(start) if is_url(start) else _as_listed(start, source, pattern)),
        pattern,
        hidden=hidden,
        litter=litter if not is_named else "",
    )


def _as_listed(start: str, source: TableSource, pattern: list[str]) -> str:
    """A local folder as the listing spells it."""
    return start if pattern and not source.pattern else os.path.normpath(start)


def paths_in(pages: Iterable[Page]) -> Iterator[bytes]:
    return chain.from_iterable([os.path.join(folder, name) for name in names] for folder, names in pages)
