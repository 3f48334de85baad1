"""Avro files: cut between blocks, read with the types of their schema, and refused when they are damaged."""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable import plan as plans
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import Input
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput
from parallelrun_worker.mini_batches.mini_batch import Loader
from parallelrun_worker.tables.table import Table
from tests.unit.tables.cutting import Cut, folder_with, new_folder
from tests.unit.tables.grouping import Grouped

fastavro = pytest.importorskip("fastavro")

READ = "read_avro"
MARKER = bytes(range(100, 116))
"""Random in a real file."""
NUMBERS = {"type": "record", "name": "Row", "fields": [
    {"name": "n", "type": "long"}, {"name": "t", "type": ["null", "string"]},
]}  # fmt: skip
UTC = timezone.utc  # noqa: UP017 - mypy's name of it


def avro(blocks: Sequence[Sequence[Any]], schema: Any = NUMBERS, codec: str = "null") -> bytes:
    """A file with these blocks, of which any may be empty."""
    file = io.BytesIO()
    writer = fastavro.write.Writer(file, schema, codec=codec, sync_interval=1 << 40, sync_marker=MARKER)
    for rows in blocks:
        for row in rows:
            writer.write(row)
        writer.dump()
    return file.getvalue()


def numbered(blocks: Sequence[int], first: int = 0) -> list[list[dict[str, Any]]]:
    """Blocks of so many rows each, counted from `first`."""
    rows = iter(range(first, first + sum(blocks)))
    return [[{"n": (n := next(rows)), "t": f"text {n}" if n % 3 else None} for _ in range(size)] for size in blocks]


def cut_of(content: bytes, *steps: Any, size: int | str = 1 << 20) -> Cut:
    return Cut(folder_with({"a.avro": content}), [READ, *steps], size)


sizes = st.one_of(st.integers(1, 300), st.integers(1, 7).map("rows:{}".format), st.just(1 << 20))


@given(
    files=st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=3),
    size=sizes,
    codec=st.sampled_from(["null", "deflate"]),
    window=st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 30))),
)
@settings(deadline=None, max_examples=60)
def test_whatever_its_blocks_are_each_row_is_read_once_and_in_order(
    files: list[list[int]], size: int | str, codec: str, window: tuple[int, int | None]
) -> None:
    first = [sum(map(sum, files[:number])) for number in range(len(files))]
    folder = folder_with(
        {f"{at}.avro": avro(numbered(blocks, first[at]), codec=codec) for at, blocks in enumerate(files)}
    )
    skip, take = window
    steps = [{"skip": skip}, *([] if take is None else [{"take": take}])]
    cut = Cut(folder, [READ, *steps], size)
    expected = range(sum(map(sum, files)))[skip:][:take]
    assert cut.rows() == [(n, f"text {n}" if n % 3 else None) for n in expected]
    assert [piece.rows for piece in cut.pieces] == [len(frame) for frame in cut.frames]
    assert [piece.first_row for piece in cut.pieces] == [int(frame["n"].iloc[0]) - skip for frame in cut.frames]
    assert all(list(frame.index) == list(range(len(frame))) for frame in cut.frames)


def test_a_number_of_rows_is_cut_within_blocks() -> None:
    cut = cut_of(avro(numbered([5, 5, 1])), size="rows:3")
    assert [len(frame) for frame in cut.frames] == [3, 3, 3, 2]
    assert [(piece.left_out, piece.rows) for piece in cut.pieces] == [(0, 3), (3, 3), (1, 3), (4, 2)]


def test_blocks_are_joined_up_to_the_size_and_never_cut_for_it() -> None:
    content = avro(numbered([1, 1, 1, 200, 1]))
    cut = cut_of(content, size=100)
    assert [len(frame) for frame in cut.frames] == [3, 200, 1]
    assert cut.pieces[-1].end == len(content)


def test_a_sample_differs_between_pieces_that_begin_in_the_same_block() -> None:
    cut = cut_of(avro(numbered([40])), {"take_random_sample": {"probability": 0.5, "seed": 3}}, size="rows:20")
    assert len({piece.start for piece in cut.pieces}) == 1
    first, second = ({n % 20 for n in frame["n"]} for frame in cut.frames)
    assert first != second


TYPED = {"type": "record", "name": "Typed", "fields": [
    {"name": "i", "type": "int"}, {"name": "f", "type": "float"}, {"name": "d", "type": "double"},
    {"name": "b", "type": "boolean"}, {"name": "s", "type": "string"}, {"name": "y", "type": "bytes"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
    {"name": "again", "type": ["null", "Color"]},
    {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
    {"name": "list", "type": {"type": "array", "items": "long"}},
    {"name": "map", "type": {"type": "map", "values": ["null", "string"]}},
    {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}},
    {"name": "either", "type": ["null", "string", "long"]},
    {"name": "odd", "type": {"type": "long", "logicalType": "of-another-world"}},
]}  # fmt: skip
ROW = {
    "i": 1, "f": 0.5, "d": 0.1, "b": True, "s": "é", "y": b"\0\xff", "day": date(2024, 2, 29),
    "ms": datetime(1969, 12, 31, 23, 59, 59, 5000, UTC), "us": datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
    "local": datetime(2024, 1, 2, 3, 4, 5, 6), "clock": time(1, 2, 3), "price": Decimal("12.30"),  # noqa: DTZ001
    "id": uuid.UUID(int=7), "color": "RED", "again": "BLUE", "four": b"abcd", "list": [1, 2], "map": {"k": None},
    "inner": {"x": 3}, "either": 5, "odd": 9,
}  # fmt: skip
DTYPES = {
    "i": "int32", "f": "float32", "d": "float64", "b": "bool", "ms": "datetime64[ms, UTC]",
    "us": "datetime64[us, UTC]", "local": "datetime64[us]", "odd": "int64",
}  # fmt: skip


def test_columns_have_the_types_of_the_schema_and_other_values_are_objects() -> None:
    frame = cut_of(avro([[ROW, ROW]], TYPED)).frame
    assert {name: str(frame[name].dtype) for name in frame} == {
        name: DTYPES.get(name, "object") for name in ROW
    }  # fmt: skip
    assert frame.iloc[1].to_dict() == {**ROW, "id": str(ROW["id"])}


NULLABLE = {"type": "record", "name": "Nullable", "fields": [
    {"name": name, "type": ["null", type_]}
    for name, type_ in {
        "n": "long", "d": "double", "b": "boolean", "s": "string",
        "t": {"type": "long", "logicalType": "timestamp-micros"}, "id": {"type": "string", "logicalType": "uuid"},
    }.items()
]}  # fmt: skip


def test_nulls_are_those_of_any_table() -> None:
    when = datetime(2024, 1, 2, tzinfo=UTC)
    full = {"n": 1, "d": 1.5, "b": True, "s": "", "t": when, "id": uuid.UUID(int=1)}
    frame = cut_of(avro([[full, dict.fromkeys(full)]], NULLABLE)).frame
    assert [str(frame[name].dtype) for name in "ndbst"] == [
        "float64", "float64", "object", "object", "datetime64[us, UTC]",
    ]  # fmt: skip
    assert frame.isna().to_numpy().tolist() == [[False] * 6, [True] * 6]
    assert (frame["b"].tolist(), frame["s"].tolist(), frame["id"][1]) == ([True, None], ["", None], None)
    alone = cut_of(avro([[full]], NULLABLE)).frame
    assert [str(alone[name].dtype) for name in "nb"] == ["int64", "bool"]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_codecs_that_need_no_library_are_read(codec: str) -> None:
    assert cut_of(avro(numbered([3, 4]), codec=codec)).frame["n"].tolist() == list(range(7))


def with_codec(codec: bytes) -> bytes:
    """A file that says so, of rows that are not compressed."""
    content = avro(numbered([2]))
    return content.replace(b"avro.codec\x08null", b"avro.codec" + bytes([2 * len(codec)]) + codec)


def test_a_codec_that_nobody_knows_is_refused_when_the_file_is_cut() -> None:
    with pytest.raises(InvalidInput, match=r"a\.avro: its codec 'brotli' is not known; write it again with one of"):
        cut_of(with_codec(b"brotli"))


def test_the_library_that_a_codec_lacks_is_named() -> None:
    codec, library = "lz4", "lz4"
    try:
        __import__(f"{library}.block")
    except ImportError:
        with pytest.raises(ValueError, match=rf"a\.avro: {codec} .*{library}.*: add one to the job's environment"):
            cut_of(with_codec(codec.encode()))


WHOLE = avro(numbered([3, 3]), codec="deflate")


@pytest.mark.parametrize("content, problem", [
    (b"", "not an Avro file: it is empty; leave it out"),
    (b"PAR1 not this", "not an Avro file: it does not begin as one"),
    (WHOLE[:30], "its header is cut off"),
    (avro([[5]], "long"), "its rows have no columns: the schema of a table is a record"),
])  # fmt: skip
def test_a_table_without_any_file_of_its_kind_is_refused_with_what_to_do(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=rf"a\.avro: .*{problem}"):
        cut_of(content)


@pytest.mark.parametrize("content, problem", [
    (WHOLE[:-1], r"cut off: its last block, at byte \d+, lacks 1 bytes; copy the file again"),
    (WHOLE[:-17], "cut off: its last block"),
    (WHOLE[:-1] + b"?", r"damaged: there is no sound block at byte \d+; copy the file again"),
    (WHOLE + b"\x02", r"cut off: its last block, at byte \d+, lacks the rest of its head"),
    (WHOLE + b"\x01\x02", r"damaged: there is no sound block at byte \d+"),
])  # fmt: skip
def test_what_is_damaged_of_a_file_fails_its_own_mini_batch_alone(content: bytes, problem: str) -> None:
    folder = folder_with({"a.avro": content, "b.avro": WHOLE})
    cut = Cut(folder, ["read_avro"], keep_errors=True)
    (error,) = cut.errors
    assert re.search(r"a\.avro: .*damaged.*; copy the file again, or leave it out", error)
    assert len(cut.rows()) >= 6
    assert cut.pieces[-1].first_row == -1
    counted = Cut(folder, ["read_avro", {"skip": 1}], keep_errors=True)
    assert counted.errors == cut.errors
    assert counted.rows() == cut.rows()[1:]
    assert [warning.kind for warning in counted.warnings] == ["uncounted"]


@pytest.mark.parametrize("content", [b"", b"Obj", WHOLE[:30], b"PAR1 not this"])
def test_a_first_file_that_is_no_avro_file_fails_no_other(content: bytes) -> None:
    cut = Cut(folder_with({"a.avro": content, "b.avro": WHOLE}), ["read_avro"], keep_errors=True)
    assert [len(frame) for frame in cut.frames] == [6]
    assert ["a.avro: " in error for error in cut.errors] == [True]


def test_rows_that_cannot_be_unpacked_fail_their_mini_batch_with_the_file() -> None:
    content = avro(numbered([3])).replace(MARKER + b"\x06", MARKER + b"\x12")  # nine rows instead of three
    with pytest.raises(ValueError, match=r"a\.avro: not an Avro file, or damaged"):
        cut_of(content)


def test_a_file_without_rows_is_no_mini_batch() -> None:
    assert cut_of(avro([])).pieces == cut_of(avro([[], []])).pieces == []


def schema_with(*fields: tuple[str, Any], **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields],
            **attributes}  # fmt: skip


A, B = ("a", "long"), ("b", "long")
DIFFERENT = [
    (schema_with(A), "differs in b"),
    (schema_with(A, B, ("c", "long")), "differs in c"),
    (schema_with(A, ("b", ["null", "long"])), "differs in b"),
    (schema_with(B, A), "has another order"),
]


@pytest.mark.parametrize("other, problem", DIFFERENT)
@pytest.mark.parametrize("keys", [[], ["shop"]])
def test_files_with_other_columns_are_refused_before_they_are_read(other: Any, problem: str, keys: list[str]) -> None:
    row = {"a": 1, "b": 2, "c": 3}
    folder = folder_with({"x/1.avro": avro([[row]], schema_with(A, B)), "y/2.avro": avro([[row]], other)})
    steps = [READ, {"extract_columns_from_partition_format": "{shop}/*.avro"}]
    spec = {"entry_script": "e.py", "inputs": {"data": {"path": str(folder), "transformations": steps}}}
    cuts = InputCuts(new_folder(), JobSpec.parse({**spec, "partition_keys": keys}), KnownInput())
    with pytest.raises(InvalidInput, match=rf"2\.avro: its schema is not that of .*1\.avro, it {problem}; .* input"):
        list(cuts)


def test_schemas_may_differ_in_what_is_not_data() -> None:
    same = schema_with(("a", {"type": "long"}), B, doc="rows", namespace="n")
    row = {"a": 1, "b": 2}
    folder = folder_with({"1.avro": avro([[row]], schema_with(A, B)), "2.avro": avro([[row]], same)})
    assert Cut(folder, [READ]).rows() == [(1, 2), (1, 2)]


def test_a_file_that_was_changed_after_it_was_cut_is_not_read_as_it_is() -> None:
    folder = folder_with({"a.avro": avro(numbered([5]))})
    cut = Cut(folder, [READ])
    (folder / "a.avro").write_bytes(avro(numbered([4])))
    piece = cut.pieces[0]
    with pytest.raises(ValueError, match=r"a\.avro: it has fewer rows than when it was cut"):
        cut.table.read([(piece.path.decode(), *piece.rest)])


def test_steps_apply_as_to_any_table() -> None:
    content = avro(numbered([4, 4]))
    steps = [
        {"filter": 'col("n") > 2'}, {"keep_columns": ["n"]},
        {"convert_column_types": [{"columns": "n", "column_type": "string"}]},
    ]  # fmt: skip
    assert cut_of(content, *steps).frame["n"].tolist() == ["3", "4", "5", "6", "7"]
    folder = folder_with({"s1/2024-02-01.avro": content})
    by_path = {"extract_columns_from_partition_format": "{shop}/{day:yyyy-MM-dd}.avro"}
    frame = Cut(folder, [by_path, {READ: {"include_path_column": True}}]).frame
    assert list(frame.columns) == ["Path", "shop", "day", "n", "t"]
    assert frame["day"][0] == pd.Timestamp("2024-02-01")


@pytest.mark.parametrize("step", [{"filter": 'col("gone") == 1'}, {"keep_columns": "gone"}])
def test_columns_that_the_schema_lacks_are_found_before_anything_is_cut(step: Any) -> None:
    folder = folder_with({"a.avro": avro(numbered([2]))})
    given = {"path": str(folder), "transformations": [READ, step]}
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": {"data": given}})
    with pytest.raises(InvalidInput, match=r"names .*'gone'; there are n, t$"):
        list(InputCuts(new_folder(), spec, KnownInput()))


def test_rows_are_grouped_by_columns_with_all_their_values() -> None:
    rows = [{**ROW, "i": number, "color": "RED" if number % 2 else "BLUE"} for number in range(7)]
    folder = folder_with({"1.avro": avro([rows[:3], rows[3:5]], TYPED), "2.avro": avro([rows[5:]], TYPED, "deflate")})
    grouped = Grouped(folder, [READ], ["color"])
    assert {keys: frame["i"].tolist() for keys, frame in grouped.frames.items()} == {
        ("BLUE",): [0, 2, 4, 6], ("RED",): [1, 3, 5],
    }  # fmt: skip
    whole = Cut(folder, [READ], "rows:1").frames[1]
    pd.testing.assert_frame_equal(grouped.frames["RED",].iloc[:1], whole)


def test_whole_numbers_beside_nulls_keep_their_digits_as_keys() -> None:
    large = (1 << 53) + 1
    rows = [{"n": 1, "t": None}, {"n": large, "t": "x"}]
    schema = schema_with(("n", ["null", "long"]), ("t", ["null", "string"]))
    folder = folder_with({"a.avro": avro([[*rows, {"n": None, "t": "y"}]], schema)})
    assert set(Grouped(folder, [READ], ["n"]).frames) == {("1",), (str(large),), (None,)}


def test_a_worker_without_the_library_says_what_to_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_input("data", Input(path=str(tmp_path), transformations=(READ,)), [])
    (tmp_path / "inputs.json").write_bytes(msgspec.json.encode([plan]))
    Loader(str(tmp_path / "inputs.json")).prepare()
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(ImportError, match=r"read with fastavro, .* Add fastavro to the job's environment"):
        Loader(str(tmp_path / "inputs.json")).prepare()


def test_keys_from_columns_are_refused_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "find_spec", lambda name: None if name == "fastavro" else find_spec(name))
    with pytest.raises(InvalidInput) as refused:
        plan_input("data", Input(path="/data", transformations=(READ,)), ["n"])
    (problem,) = refused.value.problems
    assert "not installed on the server" in problem.message
    assert "install fastavro there" in problem.hint


def test_times_that_python_cannot_hold_are_explained() -> None:
    schema = schema_with(("t", "long"))
    content = avro([[{"t": 1 << 60}]], schema)
    typed = {**schema, "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}
    head, tail = avro([], typed), content[len(avro([], schema)) :]
    content = head[:-16] + content[len(avro([], schema)) - 16 :][:16] + tail
    with pytest.raises(ValueError, match="not in the years 1 to 9999"):
        cut_of(content)


def test_the_schema_is_frozen_with_the_plan() -> None:
    cut = cut_of(avro(numbered([1])))
    record = json.loads(msgspec.json.encode(cut.plan))
    assert Table(record, "").names() == ["n", "t"]
