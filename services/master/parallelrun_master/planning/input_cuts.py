"""Cuts of inputs: from their plans to the mini-batches of the manifest, every kind of input, one after another."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.input_plan import InputPlan, load_plans, save_plans
from parallelrun_core.mltable.partition_format import match_partition
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_core.storage.interface import Page
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.message import (
    DescribedMiniBatch,
    Piece,
    decode,
    described_of,
    encode_described,
    encode_files,
    groups_of,
    is_described,
    join_groups,
    split_groups,
)
from parallelrun_master.planning.amount import TableAmount
from parallelrun_master.planning.column_check import check_columns, freeze_columns
from parallelrun_master.planning.cutting import Cut, Encode, Sizes, by_keys, cut, cut_in_sizes, without_known
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.leftover_warnings import leftover_warnings
from parallelrun_master.planning.path_check import path_warnings, unfit_warning
from parallelrun_master.planning.seen_files import SeenFiles
from parallelrun_master.planning.shuffling import PIECE_BYTES, OnProgress, Shuffle, read_groups, rows_of, warnings_of
from parallelrun_master.planning.sources import Sources, paths_in
from parallelrun_master.planning.table_cutting import TableCutter
from parallelrun_master.planning.versions import Versions

_SAMPLE_FILES = 32

Warn = Callable[[DataWarning], object]


@dataclass
class KnownInput:
    """The mini-batches in the manifest of earlier leaders, and how often each is there."""

    files: SeenFiles = field(default_factory=SeenFiles)
    pieces: Counter[tuple[int, bytes, int]] = field(default_factory=Counter)
    """By input, path and start: two inputs may be the same table, and be read differently."""
    keys: set[tuple[int, tuple[str | None, ...]]] = field(default_factory=set)
    mini_batches: int = 0


def known_in(folder: Path) -> KnownInput:
    """Read a manifest that is not complete."""
    cut_before = KnownInput()
    for entry in read_manifest(folder):
        cut_before.mini_batches += 1
        message = decode(entry.raw)
        if not is_described(message):
            groups = groups_of(message)
        else:
            described = described_of(message)
            groups = [(group[0], group[1:]) for group in (text.split(b"\0") for text in split_groups(described.groups))]
            cut_before.pieces.update((described.input, piece.path, piece.start) for piece in described.pieces)
            cut_before.keys.add((described.input, tuple(described.keys)))
        for where, names in groups:
            cut_before.files.add(where, names)
    return cut_before


class InputCuts:
    """Iterates over all mini-batches that the manifest does not hold yet; None now and then while a file is read.

    Args:
        begins: called for each input when its turn comes, with its number and whether it is a table.
        term: of the leader.
        on_progress: called while rows are grouped by keys.
        rule: which files may be listed and opened; None: any.
        warn: called with each warning about the data that listing or cutting finds; once for a file and column.
        sizes: decides how many files a mini-batch gets, if the job chooses that itself.

    Raises:
        OSError: an input can't be read.
        InvalidInput: an input is not what the job spec or its MLTable file says, or the rule refuses a part of it.
        ShuffleFailed: its rows can't be grouped here.
    """

    def __init__(
        self,
        folder: Path,
        spec: JobSpec,
        cut_before: KnownInput,
        begins: Callable[[int, bool], object] = lambda *_: None,
        *,
        term: int = 0,
        on_progress: OnProgress = lambda *_: None,
        rule: PathRule | None = None,
        warn: Warn = lambda _: None,
        sizes: Sizes | None = None,
    ) -> None:
        self._folder = folder
        self._term = term
        self._chosen_sizes = sizes
        self._on_progress = on_progress
        self._begins = begins
        self._spec = spec
        self._rule = rule
        self._warn = warn
        self._known = cut_before
        self.tables = TableAmount(has_more=bool(cut_before.pieces))
        """How much has been cut of tables."""
        self.is_sorted = True
        """Whether all that has been listed came by path."""
        self.asks_stores = any(
            is_url(job_input.path) or job_input.type == "mltable" for _, job_input in spec.data_inputs()
        )
        """Whether iterating may ask a store; what an MLTable file names is known when it has been read."""

    def __iter__(self) -> Generator[Cut | None]:
        if self._spec.rank_mini_batch_count:
            yield from self._ranks()
            return
        plans = load_plans(self._folder)
        first_turn = plans is None
        plans = plan_inputs(self._spec, self._rule) if plans is None else plans
        if first_turn:
            for number, plan in enumerate(plans):
                if plan.is_table or plan.partition is not None:
                    yield from self._prepare(number, plan)
            plans = save_plans(self._folder, plans)
        self.asks_stores = self.asks_stores and any(_is_elsewhere(plan) for plan in plans)
        for number, plan in enumerate(plans):
            self._begins(number, plan.is_table)
            versions = Versions() if plan.is_staged else None
            sources = Sources(plan, self._rule, versions)
            yield from self._input(number, plan, iter(sources), versions, is_last=plan is plans[-1])
            self.is_sorted = self.is_sorted and sources.is_sorted
            for warning in leftover_warnings(plan, sources.leftovers):
                self._warn(warning)

    def _prepare(self, number: int, plan: InputPlan) -> Iterator[None]:
        """Put into a plan what is to be the same as long as the job runs."""
        plan.sample = [os.fsdecode(path) for path in islice(paths_in(Sources(plan, self._rule)), _SAMPLE_FILES)]
        if plan.is_table:
            format_of(plan.kind).prepare(plan, self._rule)
        for warning in path_warnings(plan):
            self._warn(warning)
        if not plan.is_table:
            return
        yield from check_columns(plan, self._rule, self._warn)
        yield from freeze_columns(plan, Layout(self._folder).schema(number), self._rule)

    def _ranks(self) -> Iterator[Cut]:
        """Mini-batches without data: each is one item (reference §3.5)."""
        for _ in range(self._known.mini_batches, self._spec.rank_mini_batch_count):
            yield Cut(encode_described(DescribedMiniBatch(-1), 1), 1)

    def _input(
        self, number: int, plan: InputPlan, pages: Iterator[Page], versions: Versions | None, *, is_last: bool
    ) -> Iterator[Cut | None]:
        if plan.is_shuffled:
            yield from self._shuffled(number, plan, pages, versions)
        elif plan.keys:
            yield from self._keyed(number, plan, pages, versions)
        elif plan.is_table:
            yield from self._table(number, plan, pages, versions)
        else:
            fresh = without_known(pages, self._known.files) if self._known.files else pages
            is_described = plan.is_copied or versions is not None
            encode = _encoder(number, versions) if is_described else encode_files
            fresh = versions.keep_only(fresh) if versions is not None else fresh
            if self._chosen_sizes is not None:
                yield from cut_in_sizes(fresh, self._chosen_sizes, encode, is_last=is_last)
            else:
                yield from cut(fresh, self._spec.size.files, encode)

    def _table(
        self, number: int, plan: InputPlan, pages: Iterator[Page], versions: Versions | None
    ) -> Iterator[Cut | None]:
        cut_pieces = self._known.pieces
        cutter = TableCutter(plan, self._spec.size, self._rule, versions, warn=self._warn)
        pages = versions.keep_only(pages) if versions is not None else pages
        if plan.is_indivisible:
            pieces = cutter.whole(paths_in(pages))
            if pieces and not cut_pieces[number, pieces[0].path, 0]:
                self._count(plan, pieces)
                yield Cut(encode_described(DescribedMiniBatch(number, [], pieces), 0), 0)
            return
        for piece in cutter.pieces(paths_in(pages)):
            if piece is None:
                yield None
            elif cut_pieces[number, piece.path, piece.start]:
                cut_pieces[number, piece.path, piece.start] -= 1
                yield None
            else:
                self._count(plan, [piece])
                yield Cut(encode_described(DescribedMiniBatch(number, [], [piece]), 0), 0)

    def _count(self, plan: InputPlan, pieces: list[Piece]) -> None:
        self.tables.add(pieces, counts_rows=format_of(plan.kind).counts_rows)

    def _shuffled(
        self, number: int, plan: InputPlan, pages: Iterator[Page], versions: Versions | None
    ) -> Iterator[Cut | None]:
        """A mini-batch for each group of rows, once they are grouped."""
        cutter = TableCutter(plan, MiniBatchSize.parse(PIECE_BYTES), self._rule, versions, warn=self._warn)
        shuffle = Shuffle(self._folder, number, plan, self._term, self._on_progress, rule=self._rule)
        paths = paths_in(versions.keep_only(pages) if versions is not None else pages)
        yield from shuffle.run(cutter.pieces(paths), lambda: self._sizes(plan))
        for warning in warnings_of(self._folder, number):
            self._warn(warning)
        path = rows_of(number).encode()
        for start, end, keys in read_groups(self._folder, number):
            if not self._known.pieces[number, path, start]:
                piece = Piece(path, start, end, is_aligned=True)
                self.tables.add([piece], counts_rows=False)
                yield Cut(encode_described(DescribedMiniBatch(number, keys, [piece]), 0), 0)

    def _sizes(self, plan: InputPlan) -> Iterator[int]:
        """The sizes of an input's files, those in stores as they are listed."""
        versions = Versions() if plan.is_staged else None
        pages = iter(Sources(plan, self._rule, versions))
        for path in paths_in(versions.keep_only(pages) if versions is not None else pages):
            yield (versions.taken_of(path) if versions is not None else storage_of(path).version(path)).size_bytes

    def _keyed(
        self, number: int, plan: InputPlan, pages: Iterator[Page], versions: Versions | None
    ) -> Iterator[Cut | None]:
        cutter = TableCutter(plan, self._spec.size, self._rule, versions, warn=self._warn) if plan.is_table else None
        for keyed in by_keys(versions.keep_only(pages) if versions is not None else pages, values_of(plan)):
            if keyed is None:
                yield None
                continue
            values, groups = keyed
            if (number, values) in self._known.keys:
                continue
            if cutter is not None:
                pieces = cutter.whole(paths_in(groups))
                self._count(plan, pieces)
                yield Cut(encode_described(DescribedMiniBatch(number, list(values), pieces), 0), 0)
            else:
                items = sum(len(names) for _, names in groups)
                if None in values:
                    self._warn(unfit_warning(plan, os.path.join(groups[0][0], groups[0][1][0]), items))
                group_versions = versions.take(groups) if versions is not None else []
                described = DescribedMiniBatch(number, list(values), [], join_groups(groups), group_versions)
                yield Cut(encode_described(described, items), items)


def _is_elsewhere(plan: InputPlan) -> bool:
    return is_url(plan.path) or any(is_url(source.path) for source in plan.sources)


def _encoder(number: int, versions: Versions | None) -> Encode:
    def encode(groups: list[Page], items: int) -> bytes:
        group_versions = versions.take(groups) if versions is not None else []
        return encode_described(DescribedMiniBatch(number, [], [], join_groups(groups), group_versions), items)

    return encode


def _printable(value: str) -> str:
    """A part of a path as UTF-8, which messages are; a path may hold any bytes."""
    return os.fsencode(value).decode(errors="backslashreplace")


def values_of(plan: InputPlan) -> Callable[[bytes], tuple[str | None, ...]]:
    """A function that finds the values of the job's keys in a path; all None if it doesn't fit the partition format."""
    partition = plan.partition
    if partition is None:
        return lambda _: (None,) * len(plan.keys)
    pattern, root = re.compile(partition.pattern, re.DOTALL), os.fsencode(plan.root)
    positions = [partition.names.index(key) for key in plan.keys]

    def find(path: bytes) -> tuple[str | None, ...]:
        values = match_partition(pattern, partition.starts_above, path, root)
        return tuple(_printable(values[at]) for at in positions) if values is not None else (None,) * len(positions)

    return find
