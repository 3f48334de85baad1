"""What a master reads of tables, it reads of files that jobs may use, whatever has become of them since the listing."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.mltable.formats import read_steps
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input, MiniBatchSize
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.wire.message import Piece
from parallelrun_master.planning.column_check import bounded_record, check_columns
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.shuffling import Shuffle
from parallelrun_master.planning.table_cutting import TableCutter
from parallelrun_worker.shuffle.chunks import ChunkReader
from parallelrun_worker.tables.data_warnings import DataWarnings
from parallelrun_worker.tables.table import Table

SUFFIXES = {step.kind(): step.suffixes[0] for step in read_steps().values() if step.suffixes}
KINDS = tuple(SUFFIXES)
"""All kinds of tables that are files; Delta Lake has none of its own."""


def write(kind: str, path: Path, column: str = "key") -> None:
    """A table with one row."""
    if kind == "delimited":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([[column, "n"], ["a", "1"]])
    elif kind == "json_lines":
        path.write_text(f'{{"{column}": "a", "n": 1}}\n')
    elif kind == "parquet":
        pq.write_table(pa.table({column: ["a"], "n": [1]}), path)
    else:
        assert kind == "avro", f"a file of the kind {kind} is needed here"
        import fastavro

        fields = [{"name": column, "type": "string"}, {"name": "n", "type": "int"}]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [{column: "a", "n": 1}])


class Swapped:
    """A table whose one file has been replaced by a link to another, which jobs may not use, after it was listed."""

    def __init__(self, kind: str, folder: Path) -> None:
        for name in ("in", "elsewhere", "root"):
            (folder / name).mkdir()
        self.kind = kind
        self.folder = folder
        self.path = folder / "in" / f"table{SUFFIXES[kind]}"
        write(kind, self.path)
        write(kind, folder / "elsewhere" / "secret")
        steps: tuple[dict[str, object], ...] = ({f"read_{kind}": {}}, {"keep_columns": ["key"]})
        self.plan = plan_input("data", Input(path=str(folder / "in"), transformations=steps), ["key"])
        self.plan.sample = [str(self.path)]
        self.rule = PathRule(folder / "root", Places(roots=[str(folder / "in")]))
        format_of(kind).prepare(self.plan, self.rule)

    def swap(self) -> None:
        """Put the link there."""
        self.path.unlink()
        self.path.symlink_to(self.folder / "elsewhere" / "secret")

    @property
    def record(self) -> dict[str, object]:
        return bounded_record(self.plan, self.rule)

    def pieces(self) -> Iterator[tuple[object, ...]]:
        yield str(self.path), 0, -1 if self.kind in ("parquet", "avro") else 1 << 20, True, 0


def check_readers(kind: str, folder: Path) -> None:
    """Whoever reads rows with the rights of a master refuses what the link leads to."""
    table = Swapped(kind, folder)
    record = table.record
    assert Table(dict(record), "").names() == ["key", "n"]
    table.swap()
    if kind != "avro":  # its columns are in the plan
        with pytest.raises(PermissionError, match="jobs may not use") as refused:
            Table(dict(record), "").names()
        assert refused.value.filename == str(table.path)
    reader = ChunkReader(dict(record), str(folder / "root" / "schema"), DataWarnings())
    with pytest.raises(PermissionError, match="jobs may not use"):
        reader.read(next(table.pieces()))


@pytest.mark.parametrize("kind", KINDS)
def test_readers_of_rows_refuse_what_a_link_leads_to(kind: str, tmp_path: Path) -> None:
    if kind == "avro":
        pytest.importorskip("fastavro")
    check_readers(kind, tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_a_file_is_not_cut_that_a_link_leads_to(kind: str, tmp_path: Path) -> None:
    table = Swapped(kind, tmp_path)
    table.swap()
    cutter = TableCutter(table.plan, MiniBatchSize.parse("1kb"), table.rule)
    with pytest.raises(UnsafePath, match="outside of the folders"):
        list(cutter.pieces([os.fsencode(table.path)]))


def test_the_column_check_tells_nothing_of_what_a_link_leads_to(tmp_path: Path) -> None:
    table = Swapped("delimited", tmp_path)
    (tmp_path / "elsewhere" / "secret").write_text("root:x:0:0\n")
    table.swap()
    for _ in check_columns(table.plan, table.rule):
        pass
    with pytest.raises(InvalidInput, match="root:x:0:0"):  # what it would say
        for _ in check_columns(table.plan):
            pass


def test_rows_are_not_grouped_that_a_link_leads_to(tmp_path: Path) -> None:
    table = Swapped("delimited", tmp_path)
    table.swap()
    shuffle = Shuffle(tmp_path / "root", 0, table.plan, 1, lambda *_: None, rule=table.rule)
    with pytest.raises(InvalidInput, match="jobs may not use"):
        for _ in shuffle.run([Piece(os.fsencode(table.path), 0, 10)], lambda: [10]):
            pass
