"""The fast parser of JSON lines makes the same of a text as the one that goes line by line, or leaves it to that."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_worker.tables import json_by_arrow
from parallelrun_worker.tables.arrow_arrays import arrow_of
from parallelrun_worker.tables.formats import json_lines
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.json_by_arrow import frame_of_table, read_table, with_nulls
from parallelrun_worker.tables.records import NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.text_format import BadLine
from parallelrun_worker.tables.values import Values
from tests.unit.tables.test_arrow_rows import assert_same, table_of

NAMES = ["i", "f", "n", "s", "b", "o"]
KINDS: list[Kind] = [{"kind": kind} for kind in ("int", "float", "any", "string", "bool", "any")]
TYPED = [place for place, kind in enumerate(KINDS) if kind["kind"] != "any"]
SCHEMAS = [(NAMES, KINDS), ([NAMES[place] for place in TYPED], [KINDS[place] for place in TYPED])]
"""With columns that have no type, and without."""

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
    "n": st.sampled_from(["null", "null", "null", "1", '"x"', '"2024-01-02"', "1.5", "-0", "[]"]),
    "o": st.sampled_from(["null", '{"x":1}', '{"x":2,"y":[1,2]}', '{"y":["2024-01-02"]}', '{"x":"a"}', '{"x":1,"x":2}',
                          '{"x":1.5}', '{"x":1.0}', '{"z":{"a":true}}', "[[]]", "{}", '{"x":9223372036854775808}']),
}  # fmt: skip
plain: dict[str, st.SearchStrategy[str]] = {
    "i": st.one_of(st.integers(-(1 << 54), 1 << 54).map(str), st.just("null")),
    "f": st.one_of(st.floats(-1e9, 1e9).map(repr), st.just("null")),
    "s": st.one_of(st.text(max_size=4).map(json.dumps), st.just("null")),
    "b": st.sampled_from(["true", "false", "null"]),
    "n": st.just("null"),
    "o": st.sampled_from(["null", '{"x":1}', '{"x":2,"y":["1"]}', '{"y":["2024-01-02"]}', '{"z":{"a":true}}', "{}"]),
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A text of some lines, most of them objects with names of the schema."""
    pool = plain if draw(st.booleans()) else values
    names = st.lists(st.sampled_from([*"ifsb", *"ifsbno", "new" if pool is values else "i"]), max_size=5)
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        row = draw(names)
        fields = [f'"{name}":{draw(pool.get(name, st.just("1")))}' for name in (row if pool is values else {*row})]
        rows.append("{" + ", ".join(fields) + "}")
    between = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "", ",\n", " \n "]))
    return (between.join(rows) + draw(st.sampled_from(["\n", "", "\r\n"]))).encode("utf-8", "surrogatepass")


def slowly(data: bytes, schema: Schema) -> pd.DataFrame:
    try:
        parsed = [each for _, each in json_lines._lines(data, drop_invalid=False)]
    except BadLine as error:
        raise AssertionError("pyarrow has read what the other parser refuses") from error
    return json_lines._frame_of(parsed, schema, Values("keep", is_exact=True))  # type: ignore[no-any-return]


@settings(max_examples=1500, deadline=None)
@given(lines())
@example(b'{"i":1}{"i":2}\n{"i":\n3}\n')
@example(b'{"f":-0}\n')
@example(b'{"s":"\xff"}\n')
@example(b'{"i":1}\r{"i":2}')
@example(b'\xef\xbb\xbf{"i":1}\n')
def test_json_lines_by_pyarrow_are_those_read_one_by_one(data: bytes) -> None:
    for schema in [Schema(*columns) for columns in SCHEMAS]:
        expected: pd.DataFrame | None = None
        with suppress(NotPlain):
            table = read_table(data, schema)
            expected = slowly(data, schema)
            pd.testing.assert_frame_equal(frame_of_table(table, schema), expected)
        with suppress(NotPlain):
            rows = with_nulls(read_table(data, schema, has_objects=True))
            expected = slowly(data, schema) if expected is None else expected
            assert_same(expected, rows)
            kinds = dict(zip(schema.names, schema.kinds, strict=True))
            assert rows.schema.equals(arrow_of(expected, kinds).schema)


@pytest.mark.parametrize("data", [
    b'{"i":1, "f":1.5, "s":"x", "b":true}\n{"i":null}\n', b'{"s":"\xc3\xa9"}\r\n{"i":9007199254740993}\r\n',
])  # fmt: skip
def test_json_lines_that_are_plain_are_read_by_pyarrow(data: bytes) -> None:
    assert len(read_table(data, Schema(*SCHEMAS[0]))) == 2


def test_json_lines_with_objects_are_read_by_pyarrow_for_arrow_alone() -> None:
    data = b'{"i":1, "o":{"x":1}}\n{"o":{"y":["2024-01-02"]}}\n'
    schema = Schema(*SCHEMAS[0])
    with pytest.raises(NotPlain):
        read_table(data, schema)
    rows = read_table(data, schema, has_objects=True)
    assert rows.column("o").to_pylist() == [{"x": 1, "y": None}, {"x": None, "y": ["2024-01-02"]}]


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


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_json_lines_are_looked_at_across_what_fits_into_a_cache(end: str) -> None:
    """A line that ends, or an object that goes on, just where one block of bytes follows another."""
    block = json_by_arrow._LOOKED_AT_ONCE
    schema = Schema(["a"], [{"kind": "string"}])
    for first in range(block - 4, block + 5):
        line = f'{{"a":"{"x" * (first - 8)}"}}{end}'
        whole = f'{line}{{"a":"y"}}{end}'.encode()
        assert read_table(whole, schema).to_pydict()["a"][1:] == ["y"]
        odd = f'{{"a":"{"x" * (first - 8)}"{end}}}{end}'  # one object of two lines, then two objects on a line
        with pytest.raises(NotPlain):
            read_table(f'{odd}{{"a":"y"}}{{"a":"z"}}{end}'.encode(), schema)
