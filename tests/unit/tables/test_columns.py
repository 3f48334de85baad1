"""Whether a table has the columns that its steps need is found without reading its rows, and before it is cut."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

from parallelrun_core.azure.own_form import with_own_options
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput
from parallelrun_worker.tables.columns import check
from tests.unit.tables.cutting import Cut, folder_with, new_folder

READ = "read_delimited"
TABLE = {"a.csv": "x,y,t\n1,2,a\n5,6,b\n"}
WITH_PATH = {"read_delimited": {"include_path_column": True}}
DIFFERENT = {"read_delimited": {"header": "all_files_different_headers"}}
NO_HEADER = {"read_delimited": {"header": "no_header"}}
_BY_PATH = "extract_columns_from_partition_format"
BY_PATH = {_BY_PATH: "{shop}/*.csv"}
BY_LAND = {_BY_PATH: "land={land}/*.csv"}
FITS = [
    (TABLE, [READ, {"filter": 'col("x") > 1'}]),
    (TABLE, [READ, {"filter": 'not (col("x") > 1) and is_null(col("t"))'}]),
    (TABLE, [READ, {"filter": 'col("x") > datetime(2020, 1, 2)'}]),
    (TABLE, [READ, {"keep_columns": ["x", "gone"]}, {"filter": 'col("x") > 1'}]),
    (TABLE, [WITH_PATH, {"filter": 'col("Path") != "a"'}]),
    (TABLE, [NO_HEADER, {"filter": 'col("Column3") == "a"'}]),
    ({"a.csv": "", "b.csv": "\ufeff x ;y\n1;2\n"}, [{READ: {"delimiter": ";"}}, {"filter": 'col("x") == 1'}]),
    ({"s/a.csv": "x\n1\n"}, [READ, BY_PATH, {"filter": 'col("shop") == "s"'}]),
    ({"s/a.csv": "x\n1\n"}, [BY_PATH, READ, {"filter": 'col("shop") == "s"'}]),
]
NOT_KNOWN = [
    ({"a.csv": "x\n" + "1\n" * 300, "b.csv": "y\n2\n"}, [DIFFERENT, {"filter": 'col("y") == 1'}]),
    ({"a.json": '{"x": 1}\n'}, ["read_json_lines", {"filter": 'col("y") == 1'}]),
    ({"a.csv": ""}, [READ, {"filter": 'col("gone") == 1'}]),
]
MISSING = [
    (TABLE, [READ, {"filter": 'col("x") > 1 and (col("gone") == "b" or col("t") == 3)'}], "x, y, t"),
    (TABLE, [READ, {"drop_columns": "gone"}, {"filter": '1 < col("gone") + 1'}], "x, y, t"),
    (TABLE, [READ, {"keep_columns": {"pattern": "[xy]"}}, {"filter": 'is_null(col("gone"))'}], "x, y"),
    (TABLE, [READ, {"keep_columns": "gone"}], "x, y, t"),
    (TABLE, [NO_HEADER, {"filter": 'col("gone") == 1'}], "Column1, Column2, Column3"),
    ({"s/gone.csv": "x\n1\n"}, [READ, BY_PATH, {"filter": 'col("gone") == "s"'}], "x, shop"),
]


def cut(
    files: Mapping[str, str | bytes],
    steps: Sequence[Any],
    folder: Path | None = None,
    *,
    keys: Sequence[str] = (),
    warnings: list[DataWarning] | None = None,
) -> list[Any]:
    """The mini-batches of a job with such an input."""
    given = {"path": str(folder or folder_with(files)), "transformations": steps}
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": {"data": given}, "partition_keys": keys})
    found = [] if warnings is None else warnings
    return [each for each in InputCuts(new_folder(), spec, KnownInput(), warn=found.append) if each is not None]


@pytest.mark.parametrize("step", [READ, {READ: {"include_path_column": True}}])
def test_in_our_own_form_columns_of_paths_have_values_and_every_path_must_fit(step: Any) -> None:
    files = {"region=a b/year=2023/x.csv": "v\n1\n", "other/y.csv": "v\n2\n"}
    own = [step, *map(with_own_options, [{_BY_PATH: "/region={region}/year={year}/{f}.csv"}])]
    found = Cut(folder_with(files), own, keep_errors=True)
    assert [row[-3:] for row in found.rows()] == [("a b", "2023", "x")]
    assert [error.partition("other/")[2] for error in found.errors] == [
        "y.csv: the path doesn't fit the partition format"
    ]
    assert len(cut({}, own, Path(found.plan.root))) == 2, "some paths fit"
    as_azure = [step, {_BY_PATH: {"partition_format": "/region={region}/*/{f}.csv", "on_mismatch": None}}]
    assert Cut(Path(found.plan.root), as_azure).rows()[0][-2:] == (None, None)


@pytest.mark.parametrize("steps", [[READ, BY_LAND], [BY_LAND, READ], [BY_LAND]])
@pytest.mark.parametrize("keys", [(), ("land",)])
def test_a_format_that_no_path_fits_is_refused_before_anything_is_cut(steps: list[Any], keys: Sequence[str]) -> None:
    files = {"region=eu/year=2023/x.csv": "v\n1\n"}
    message = r"no path of the first 1 files fits .* of land: .*region=\{region\}/year=\{year\}/\*"
    with pytest.raises(InvalidInput, match=message):
        cut(files, [*map(with_own_options, steps)], keys=keys)


def test_azures_form_warns_where_it_reads_null_from_paths() -> None:
    warnings: list[DataWarning] = []
    assert cut({"a/x.csv": "v\n1\n"}, [READ, BY_PATH], warnings=warnings)
    assert cut({"a/x.csv": "v\n1\n"}, [WITH_PATH, BY_PATH], warnings=warnings)
    assert cut({"a/x.csv": "v\n1\n"}, [READ, BY_PATH], keys=["shop"], warnings=warnings)
    assert ["include_path_column: true" in each.remedy for each in warnings] == [True]
    assert cut({"x.csv": "v\n1\n"}, [WITH_PATH, BY_PATH], warnings=warnings)
    assert "no path of the first 1 files fits the partition format of shop" in warnings[1].what


def test_files_in_a_mini_batch_without_keys_are_warned_of() -> None:
    warnings: list[DataWarning] = []
    files = {"a/x.csv": "", "y.csv": "", "z.csv": ""}
    assert len(cut(files, [with_own_options(BY_PATH)], keys=["shop"], warnings=warnings)) == 2
    assert [(each.what[:39], each.times) for each in warnings] == [("the path doesn't fit the partition form", 2)]


@pytest.mark.parametrize("files, steps", [*FITS, *NOT_KNOWN])
def test_a_table_that_may_have_all_columns_is_cut(files: Mapping[str, str | bytes], steps: Sequence[Any]) -> None:
    assert cut(files, steps) or not any(files.values())


@pytest.mark.parametrize("files, steps, columns", MISSING)
def test_one_without_fails_before_it_is_cut_and_names_them(
    files: Mapping[str, str | bytes], steps: Sequence[Any], columns: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"input 'data': .* names .*'gone'; there are {columns}$"):
        cut(files, steps)


@pytest.mark.parametrize("files, steps", FITS)
def test_whoever_reads_the_table_has_these_columns(files: Mapping[str, str | bytes], steps: Sequence[Any]) -> None:
    found = Cut(folder_with(files), steps)  # its filter would fail
    check(json.loads(msgspec.json.encode(found.plan)), found.table.names(), [])


def test_the_columns_of_parquet_files_are_those_of_any_of_them() -> None:
    pytest.importorskip("pyarrow")
    folder = new_folder()
    pd.DataFrame({"x": [1]}).to_parquet(folder / "a.parquet")
    pd.DataFrame({"y": [1]}).to_parquet(folder / "b.parquet")
    assert len(cut({}, ["read_parquet", {"filter": 'col("y") == 1'}], folder)) == 2
    with pytest.raises(InvalidInput, match=r"the filter names the column 'z'; there are x, y$"):
        cut({}, ["read_parquet", {"filter": 'col("z") == 1'}], folder)


def test_nobody_is_asked_for_the_columns_if_no_step_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert cut(TABLE, [READ, {"take": 2}])
    with pytest.raises(FileNotFoundError):
        cut(TABLE, [READ, {"take": 2}, {"drop_columns": "gone"}])


@pytest.mark.parametrize(
    "files, read", [(TABLE, READ), ({"a.json": '{"x": 1, "y": 2, "t": "a"}\n'}, "read_json_lines")]
)
def test_columns_that_steps_name_in_vain_are_warned_of(files: Mapping[str, str], read: str) -> None:
    warnings: list[DataWarning] = []
    conversion = {"columns": ["x", "tt"], "column_type": "string"}
    late = {"convert_column_types": [{"columns": "y", "column_type": "string"}]}
    steps = [{"convert_column_types": [conversion]}, {"drop_columns": "Path"}, {"keep_columns": ["x", "gone"]}, late]
    assert cut(files, [read, *steps], warnings=warnings)
    assert [(each.column, each.what.partition(" ")[0], each.remedy) for each in warnings] == [
        ("tt", "convert_column_types", "did you mean 't'?"),
        ("Path", "drop_columns", "include_path_column: true, an option of the read step, makes it"),
        ("gone", "keep_columns", "there are x, y, t"),
        ("y", "convert_column_types", "put convert_column_types before that step"),
    ]
    assert "a keep_columns before it has left it out" in warnings[-1].what


def test_files_that_cannot_be_read_are_told_by_whoever_reads_them() -> None:
    assert cut({"a.csv": b"x\n\xff\n"}, [READ, {"filter": 'col("x") == 1'}])


@pytest.mark.parametrize("step, size, is_noted", [
    (READ, 1, True), (WITH_PATH, "12", True), (READ, 1024, False), (READ, "rows:1", False), (BY_PATH, 1, False),
])  # fmt: skip
def test_a_few_bytes_of_a_table_are_noted(step: Any, size: int | str, is_noted: bool) -> None:
    job = {"entry_script": "e.py", "inputs": {"data": {"path": "/d", "transformations": [step]}}}
    notes = read_job({**job, "mini_batch_size": size}).notes
    assert [(note.pointer, f"write rows:{size}" in note.message) for note in notes] == [
        ("/mini_batch_size", True) for _ in range(is_noted)
    ]
