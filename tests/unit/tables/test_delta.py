"""Delta tables: the files of one version, with the partition columns that stand in their paths."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import deltalake
import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec.fields import Input
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.sources import Sources, paths_in
from parallelrun_worker.tables.parquet_reader import ParquetReader
from parallelrun_worker.tables.table import Table


def frames(folder: Path, *steps: dict[str, Any], **options: Any) -> list[pd.DataFrame]:
    """What is read of each file of a table."""
    given = Input(path=str(folder), transformations=({"read_delta_lake": options}, *steps))
    plan = plan_input("data", given, [])
    format_of(plan.kind).prepare(plan)
    fields: dict[str, Any] = {
        "kind": plan.kind, "read": plan.read, "steps": plan.steps, "root": plan.root, "extracts_first": False,
        "sample": [],
    }  # fmt: skip
    fields = json.loads(msgspec.json.encode(fields))  # as it stands in the job folder
    return [Table(fields, "").read([(path.decode(), 0, -1, True, -1)]) for path in paths_in(Sources(plan))]


def rows(folder: Path, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(row for frame in frames(folder, **options) for row in frame.itertuples(index=False, name=None))


def write_table(folder: Path, *columns: dict[str, Any], partitions: dict[str, str], **configuration: str) -> None:
    """A table of one file `p.parquet`, as other writers than ours make it."""
    pq.write_table(pa.table({"n": [1, 2]}), folder / "p.parquet")
    fields = [{"type": "long", "nullable": True, "metadata": {}, **column} for column in columns]
    metadata = {
        "id": "x", "format": {"provider": "parquet", "options": {}}, "partitionColumns": list(partitions),
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "createdTime": 0,
        "configuration": {f"delta.{name}": value for name, value in configuration.items()},
    }  # fmt: skip
    size = (folder / "p.parquet").stat().st_size
    add = {"path": "p.parquet", "partitionValues": partitions, "size": size, "modificationTime": 0, "dataChange": True}
    log = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": metadata}, {"add": add}]
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, log)))


def test_a_version_is_read_with_its_partition_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3], "year": [2020, 2021, 2021], "k": ["a b", "a b", "c/d"]})
    deltalake.write_deltalake(str(tmp_path), frame, partition_by=["year", "k"])
    deltalake.write_deltalake(str(tmp_path), frame.assign(n=9), mode="append")
    first = [(1, 2020, "a b"), (2, 2021, "a b"), (3, 2021, "c/d")]
    assert rows(tmp_path, version_as_of=0) == first
    assert rows(tmp_path, version_as_of=1) == sorted(first + [(9, year, k) for _, year, k in first])
    assert len(rows(tmp_path, timestamp_as_of="2100-01-01T00:00:00+00:00")) == 6
    with pytest.raises(InvalidInput, match="not one of its versions"):
        rows(tmp_path, version_as_of=7)


@pytest.mark.parametrize("step", [{"keep_columns": ["new", "k", "b"]}, {"drop_columns": ["a"]}, {"keep_columns": "k"}])
def test_columns_that_the_first_steps_leave_are_read_alone_and_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: dict[str, Any]
) -> None:
    old = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "y"], "k": ["p", "q", "q"]})
    deltalake.write_deltalake(str(tmp_path), old, partition_by=["k"])
    newer = old.assign(new=[0.5, 1.5, float("nan")])
    deltalake.write_deltalake(str(tmp_path), newer, mode="append", schema_mode="merge")
    wholes, read = frames(tmp_path, version_as_of=1), ParquetReader.read_for_frame

    def without_others(reader: ParquetReader, piece: Any, columns: list[str] | None = None) -> Any:
        assert columns is None or "a" not in columns
        assert columns is not None or step["keep_columns"] == "k"  # which is only in paths
        return read(reader, piece, columns)

    monkeypatch.setattr(ParquetReader, "read_for_frame", without_others)
    for frame, whole in zip(frames(tmp_path, step, version_as_of=1), wholes, strict=True):
        pd.testing.assert_frame_equal(frame, whole[list(frame.columns)])
        assert set(frame.columns) == (set(whole.columns) - {"a"} if "drop_columns" in step else {*step["keep_columns"]})


def test_days_and_times_in_paths_are_there_however_far_they_are(tmp_path: Path) -> None:
    days = [datetime.date(1500, 1, 1), datetime.date(2024, 1, 2), datetime.date(9999, 12, 31), None]
    times = pa.array([day and datetime.datetime(day.year, 1, 2, 3, 4, 5, 6) for day in days])  # noqa: DTZ001 - of the column
    for name, column in (("days", pa.array(days)), ("times", times)):
        deltalake.write_deltalake(str(tmp_path / name), pa.table({"n": range(4), "at": column}), partition_by=["at"])
        found: dict[Any, Any] = dict(rows(tmp_path / name, version_as_of=0))
        expected = [None if each is None else np.datetime64(each, "us") for each in column.to_pylist()]
        assert [None if found[n] is pd.NaT else found[n].to_datetime64() for n in range(4)] == expected


def test_without_the_library_or_the_table_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"deltalake, which is not installed|not a Delta table"):
        rows(tmp_path, version_as_of=0)


def test_columns_that_were_renamed_are_refused(tmp_path: Path) -> None:
    renamed = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "n"}
    write_table(tmp_path, {"name": "price", "metadata": renamed}, partitions={}, **{"columnMapping.mode": "name"})
    with pytest.raises(InvalidInput, match=r"can't be read by its files alone, it uses columnMapping"):
        rows(tmp_path, version_as_of=0)


def test_partition_columns_that_do_not_stand_in_the_paths_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path, {"name": "n"}, {"name": "year"}, partitions={"year": "2024"}, randomizeFilePrefixes="true")
    with pytest.raises(InvalidInput, match=r"values of year are not in the path of .*p\.parquet"):
        rows(tmp_path, version_as_of=0)


def test_a_file_that_is_older_than_a_column_has_nulls_there(tmp_path: Path) -> None:
    day, text = pd.Timestamp("2020-01-02"), "x"
    deltalake.write_deltalake(str(tmp_path), pd.DataFrame({"n": [1]}))
    later = pd.DataFrame({"n": [2], "m": [3], "t": [text], "d": [day], "l": [[1, 2]]})
    deltalake.write_deltalake(str(tmp_path), later, mode="append", schema_mode="merge")
    assert [list(frame.columns) for frame in frames(tmp_path, version_as_of=0)] == [["n"]]
    old, new = sorted(frames(tmp_path, version_as_of=1), key=lambda frame: int(frame["n"][0]))
    assert list(old.columns) == list(new.columns) == ["n", "m", "t", "d", "l"]
    assert old.isna().iloc[0].tolist() == [False, True, True, True, True]
    assert (old["d"].dtype, old["t"].dtype) == (new["d"].dtype, new["t"].dtype)
    assert new["m"].tolist() == [3]
