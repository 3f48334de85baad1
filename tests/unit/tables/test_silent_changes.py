"""Steps, paths and nested columns that would change a value: it is kept, or a warning tells."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parallelrun_core.intake.reading import read_job
from tests.odd_files.reading import outcome_of
from tests.unit.tables.test_values import Reader, plain

BIG = (1 << 53) + 1
TIME = pd.Timestamp("2024-01-02T03:04:05.123456789")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def converted(folder: Path, kind: str, values: list[str], form: str = "own") -> tuple[list[Any], list[list[Any]]]:
    (folder / "a.csv").write_text("v,w\n" + "".join(f"{value},x\n" for value in values))
    reader = Reader(
        folder, ["read_delimited", {"convert_column_types": [{"columns": "v", "column_type": kind}]}], form=form
    )
    column = reader.frame()["v"]
    warnings = json.loads(reader.warnings.take())
    return plain(column), [warning for warning in warnings if warning[0] == "conversion"]


@pytest.mark.parametrize("form", ["own", "azure"])
def test_conversion_that_makes_values_null_is_told_once_a_column(folder: Path, form: str) -> None:
    read, warnings = converted(folder, "int", ["1", "n/a", "3", "-"], form)
    assert read == [1, None, 3, None]
    assert len(warnings) == 1
    (warning,) = warnings
    assert warning[1].endswith("a.csv")
    assert (warning[2], warning[5]) == ("v", 2)
    assert "'n/a' can't be converted" in warning[3]


def test_conversion_keeps_whole_numbers_exact(folder: Path) -> None:
    values = ["a", str(BIG), str((1 << 64) - 1), str(1 << 70)]
    read, warnings = converted(folder, "int", values)
    assert read == [None, BIG, (1 << 64) - 1, 1 << 70]
    assert len(warnings) == 1
    assert converted(folder, "int", ["7", "", str(BIG)])[0] == [7, None, BIG]


def test_conversion_of_what_fits_is_told_by_no_warning(folder: Path) -> None:
    assert converted(folder, "int", ["1", "", "3.7"]) == ([1, None, 3], [])
    assert converted(folder, "float", ["1", "x1"])[0] == [1.0, None]
    assert converted(folder, "string", ["1", "2"]) == (["1", "2"], [])
    assert converted(folder, "boolean", ["true", "no way"])[0] == [True, None]


def test_conversion_of_columns_with_types_is_the_same_beside_nulls_and_told(folder: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = {"t": [TIME, None, TIME], "b": [True, None, False], "l": [[1], None, []]}
    pq.write_table(pa.table(values), folder / "a.parquet")
    for name, kind, expected in (
        ("t", "float", [None, None, None]), ("t", "int", [None, None, None]), ("l", "int", [None, None, None]),
        ("b", "int", [1, None, 0]), ("b", "float", [1.0, None, 0.0]), ("l", "string", ["[1]", None, "[]"]),
    ):  # fmt: skip
        steps = ["read_parquet", {"convert_column_types": [{"columns": name, "column_type": kind}]}]
        reader = Reader(folder, steps)
        assert plain(reader.frame()[name]) == expected
        told = [warning[0] for warning in json.loads(reader.warnings.take())]
        assert told == (["conversion"] if expected[0] is None else [])


def keys_of(folder: Path, form: str, names: list[str], read: str = "read_delimited") -> tuple[list[Any], list[Any]]:
    for name in names:
        (folder / name).mkdir()
        content = "v\n1\n" if read == "read_delimited" else '{"v": 1}\n'
        (folder / name / "a.csv").write_text(content)
    steps = [{"extract_columns_from_partition_format": {"partition_format": "{day}/a.csv"}}, read]
    reader = Reader(folder, steps, form=form, only="*/*.csv")
    frame = reader.frame(*((f"{name}/a.csv", 0, -1) for name in names))
    return plain(frame["day"]), [warning for warning in json.loads(reader.warnings.take()) if warning[0] == "path_key"]


def test_path_with_a_leading_zero_is_a_text_in_our_own_form_and_is_told_otherwise(folder: Path) -> None:
    assert keys_of(folder, "own", ["01", "12"]) == (["01", "12"], [])


def test_path_with_a_leading_zero_is_told_in_documents_of_azure(folder: Path) -> None:
    read, (warning,) = keys_of(folder, "azure", ["01", "12"])
    assert read == [1, 12]
    assert "'01' in the path was read as 1" in warning[3]


def test_path_of_which_a_part_is_no_such_number_as_the_first_keeps_it(folder: Path) -> None:
    names = ["18446744073709551615", *map(str, range(1, 40)), "9.5", "9_000", "9e3", f"9{'9' * 30}"]
    (folder / "in").mkdir()
    for name in names:
        (folder / "in" / f"n={name}").mkdir()
        (folder / "in" / f"n={name}" / "a.csv").write_text("v\n1\n")
    steps = [{"extract_columns_from_partition_format": "n={n}/a.csv"}, "read_delimited"]
    inputs = {"data": {"path": str(folder / "in"), "transformations": steps}}
    for is_arrow in (False, True):
        spec = read_job({"entry_script": "e.py", "inputs": inputs}, folder=folder).job
        outcome = outcome_of(spec, folder / f"job.{is_arrow}", is_arrow=is_arrow)
        assert sorted(str(row["n"]) for row in outcome.rows) == sorted(names)
        assert not outcome.warnings


@pytest.mark.parametrize("is_first", [True, False])
def test_path_with_a_date_that_nanoseconds_do_not_have_keeps_it_or_is_told(folder: Path, is_first: bool) -> None:
    for name in ("2024/01/02", "9999/12/31"):
        (folder / "in" / name).mkdir(parents=True)
        (folder / "in" / name / "a.csv").write_text("v\n1\n")
    form = {"extract_columns_from_partition_format": "{day:yyyy/MM/dd}/a.csv"}
    for on_mismatch, far in (("keep", "9999/12/31"), ("null", None)):
        read = {"read_delimited": {"on_mismatch": on_mismatch}}
        inputs = {"data": {"path": str(folder / "in"), "transformations": [form, read] if is_first else [read, form]}}
        for is_arrow in (False, True):
            spec = read_job({"entry_script": "e.py", "inputs": inputs}, folder=folder).job
            outcome = outcome_of(spec, folder / f"job.{on_mismatch}.{is_arrow}", is_arrow=is_arrow)
            day, last = [row["day"] for row in outcome.rows]
            assert (pd.Timestamp(day), None if last is pd.NaT else last) == (pd.Timestamp("2024-01-02"), far)
            assert ["is no date in 1678 to 2261" in each for each in outcome.warnings] == (
                [True] if far is None else []
            )


def test_path_with_a_leading_zero_is_told_of_json_lines(folder: Path) -> None:
    read, (warning,) = keys_of(folder, "own", ["01", "12"], "read_json_lines")
    assert read == [1, 12]
    assert warning[2] == "day"


def test_lists_of_parquet_hold_whole_numbers_exactly_beside_nulls(folder: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = [[BIG, None], None, [1]]
    objects = [{"x": [BIG, None]}, None, {"x": None}]
    pq.write_table(pa.table({"v": pa.array(lists), "o": pa.array(objects)}), folder / "a.parquet")
    frame = Reader(folder, "read_parquet").frame()
    assert [None if each is None else list(each) for each in frame["v"]] == lists
    assert list(frame["o"][0]["x"]) == [BIG, None]


@pytest.mark.parametrize("name", ["object", "object in an object", "map", "map of objects", "times"])
def test_objects_and_maps_of_parquet_hold_whole_numbers_and_times_exactly(folder: Path, name: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    number = pa.struct([("x", pa.int64())])
    kind, values = {
        "object": (number, [{"x": BIG}, None]),
        "object in an object": (pa.struct([("o", number)]), [{"o": {"x": BIG}}, {"o": None}]),
        "map": (pa.map_(pa.string(), pa.uint64()), [[("k", 2**64 - 1), ("j", None)], None]),
        "map of objects": (pa.map_(pa.string(), pa.list_(number)), [[("k", [{"x": BIG}, {"x": None}]), ("j", None)]]),
        "times": (
            pa.struct([("t", pa.timestamp("ns")), ("d", pa.duration("ns"))]),
            [{"t": TIME, "d": TIME - TIME}, None],
        ),
    }[name]
    pq.write_table(pa.table({"v": pa.array(values, kind)}), folder / "a.parquet")
    assert Reader(folder, "read_parquet").frame()["v"].tolist() == values


def test_a_page_of_parquet_with_another_byte_is_refused_by_its_checksum(folder: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = pa.table({"v": list(range(2, 400))})
    pq.write_table(numbers, folder / "a.parquet", write_page_checksum=True, compression="none", use_dictionary=False)
    assert Reader(folder, "read_parquet").frame()["v"].tolist() == numbers["v"].to_pylist()
    damaged = bytearray((folder / "a.parquet").read_bytes())
    damaged[200] ^= 1
    (folder / "a.parquet").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"a\.parquet: .*checksum"):
        Reader(folder, "read_parquet").frame()


def test_parquet_with_two_columns_of_one_name_is_refused_by_file_and_column(folder: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(table, folder / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: two columns have the name 'id'"):
        Reader(folder, "read_parquet").frame()


@pytest.mark.parametrize("encoding, text, count", [("latin1", "é", 1), ("latin1", "e", 0), ("utf8", "é", 0)])
def test_utf_8_that_is_read_in_a_code_page_is_told(folder: Path, encoding: str, text: str, count: int) -> None:
    (folder / "a.csv").write_bytes(f"v\n{text}\n".encode())
    reader = Reader(folder, {"read_delimited": {"encoding": encoding}})
    assert isinstance(reader.frame(), pd.DataFrame)
    told = [warning for warning in json.loads(reader.warnings.take()) if warning[0] == "code_page"]
    assert len(told) == count


def test_a_code_page_that_a_text_is_in_is_not_told(folder: Path) -> None:
    (folder / "a.csv").write_bytes("v\né\n".encode("latin1"))
    reader = Reader(folder, {"read_delimited": {"encoding": "latin1"}})
    assert plain(reader.frame()["v"]) == ["é"]
    assert not reader.warnings


@pytest.mark.parametrize(
    "data, line",
    [
        ("sep=;\nv;w\n1;x\n\n2;x\nn/a;x\n", 6),
        ("sep=;\r\nv;w\r\n1;x\r\n2;\"x\"\r\nn/a;\"y\"\r\n", 5),
        ('v,w\n1,"x\ny"\n2,"x" y"\nn/a,"x\n', 5),
        ('v,w\n1,"a ""b""\r\n"\n2,\nn/a,"a" b\n3,"\n', 5),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_with_its_line_whatever_the_text_is_like(
    folder: Path, data: str, line: int
) -> None:
    (folder / "a.csv").write_bytes(data.encode())
    step = {"on_mismatch": "null", "support_multi_line": '"' in data, "infer_column_types": {"sample_size": 2}}
    reader = Reader(folder, [{"read_delimited": step}])
    reader.frame()
    (warning,) = [each for each in json.loads(reader.warnings.take()) if each[2] == "v"]
    assert warning[7:9] == [line, data.index("n/a")]


@pytest.mark.parametrize("encoding", ["latin1", "cp1252", "iso-8859-15"])
@pytest.mark.parametrize("before", [0, 1, 3_000])
@pytest.mark.parametrize("least", [0, 1])
def test_bytes_of_no_text_are_refused_in_a_code_page_wherever_they_begin(
    folder: Path, encoding: str, before: int, least: int
) -> None:
    chance = random.Random(before)
    noise = bytes(chance.randrange(least, 256) for _ in range(9_000))
    (folder / "a.csv").write_bytes(b"v,w\n" + b"1,x\n" * before + noise)
    reader = Reader(folder, [{"read_delimited": {"encoding": encoding}}])
    with pytest.raises(ValueError, match=r"a\.csv: it is no text: of .* bytes"):
        reader.frame()


@pytest.mark.parametrize("delimiter", ["\x01", "\x07", "\x1f", ";"])
def test_text_in_a_code_page_is_read_with_a_control_character_as_its_delimiter(folder: Path, delimiter: str) -> None:
    rows = [["v", "é"], *([str(number), f"ä\x02{number}"] for number in range(500))]
    (folder / "a.csv").write_bytes("".join(delimiter.join(row) + "\r\n" for row in rows).encode("latin1"))
    frame = Reader(folder, [{"read_delimited": {"encoding": "latin1", "delimiter": delimiter}}]).frame()
    assert [[str(value) for value in row] for row in frame.itertuples(index=False)] == rows[1:]
