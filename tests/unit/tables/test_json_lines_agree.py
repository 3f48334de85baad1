"""The fast parser of JSON lines makes the same of a text as the one that goes line by line, or leaves it to that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_worker.tables.formats import json_lines
from parallelrun_worker.tables.json_by_arrow import frame_of_table, read_table, with_nulls
from parallelrun_worker.tables.records import NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.values import Values
from tests.unit.tables.test_arrow_rows import assert_same, table_of

SCHEMA = Schema(["i", "f", "s", "b"], [{"kind": kind} for kind in ("int", "float", "string", "bool")])

values: dict[str, st.SearchStrategy[str]] = {
    "i": st.sampled_from(["0", "-0", "7", "-12", "9007199254740993", "9223372036854775807", "9223372036854775808",
                          "1.0", "1e2", "01", "NaN", "null", '"x"', "true"]),
    "f": st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.sampled_from(["0", "-0", "-0.0", "1", "9007199254740993", "1e999", "NaN", "-Infinity", "null", "1.", "[]"]),
    ),
    "s": st.one_of(
        st.text("aé😀\\\"\n\t\0/", max_size=5).map(json.dumps),
        st.text("aé{}\u2028", max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
        st.sampled_from(['"\\ud800"', '"2024-01-02"', "null", "1", '{"x": 1}', '"a\tb"', '"}{"']),
    ),
    "b": st.sampled_from(["true", "false", "null", "0", '"true"']),
}  # fmt: skip
plain: dict[str, st.SearchStrategy[str]] = {
    "i": st.one_of(st.integers(-(1 << 54), 1 << 54).map(str), st.just("null")),
    "f": st.one_of(st.floats(-1e9, 1e9).map(repr), st.just("null")),
    "s": st.one_of(st.text(max_size=4).map(json.dumps), st.just("null")),
    "b": st.sampled_from(["true", "false", "null"]),
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A text of some lines, most of them objects with names of the schema."""
    pool = plain if draw(st.booleans()) else values
    names = st.lists(st.sampled_from([*"ifsb", *"ifsb", "new" if pool is values else "i"]), max_size=5)
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        row = draw(names)
        fields = [f'"{name}":{draw(pool.get(name, st.just("1")))}' for name in (row if pool is values else {*row})]
        rows.append("{" + ", ".join(fields) + "}")
    between = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "", ",\n", " \n "]))
    return (between.join(rows) + draw(st.sampled_from(["\n", "", "\r\n"]))).encode("utf-8", "surrogatepass")


def slowly(data: bytes) -> pd.DataFrame:
    parsed = [each for _, each in json_lines._lines(data, drop_invalid=False)]
    return json_lines._frame_of(parsed, SCHEMA, Values("keep", is_exact=True))  # type: ignore[no-any-return]


@settings(max_examples=1500, deadline=None)
@given(lines())
@example(b'{"i":1}{"i":2}\n{"i":\n3}\n')
@example(b'{"f":-0}\n')
@example(b'{"s":"\xff"}\n')
@example(b'{"i":1}\r{"i":2}')
@example(b'\xef\xbb\xbf{"i":1}\n')
def test_json_lines_by_pyarrow_are_those_read_one_by_one(data: bytes) -> None:
    try:
        table = read_table(data, SCHEMA)
    except NotPlain:
        return
    expected = slowly(data)
    pd.testing.assert_frame_equal(frame_of_table(table, SCHEMA), expected)
    assert_same(expected, with_nulls(table))


@pytest.mark.parametrize("data", [
    b'{"i":1, "f":1.5, "s":"x", "b":true}\n{"i":null}\n', b'{"s":"\xc3\xa9"}\r\n{"i":9007199254740993}\r\n',
])  # fmt: skip
def test_json_lines_that_are_plain_are_read_by_pyarrow(data: bytes) -> None:
    assert len(read_table(data, SCHEMA)) == 2


def test_json_lines_of_a_file_are_the_same_without_pyarrows_parser(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows: list[dict[str, Any]] = [
        {"i": number, "f": number / 3, "s": f"é {number}", "b": None if number % 7 == 0 else True}
        for number in range(5000)
    ]  # fmt: skip
    (data / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    table, pieces = table_of(data, ["read_json_lines"])
    fast = table.read(pieces)
    with patch.object(json_lines, "read_table", side_effect=NotPlain):
        pd.testing.assert_frame_equal(fast, table.read(pieces))
