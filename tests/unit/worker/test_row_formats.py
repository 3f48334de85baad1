"""Rows with a header, as JSON and as Arrow: what of run()'s return stands in a segment."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from parallelrun_worker.rows import BadReturn, Rendered, json_lines, renderer
from parallelrun_worker.rows.text import HEADER_LENGTH

DATES = pd.Series(["2020-01-02", None], dtype="datetime64[ns]")
TABLE = pd.DataFrame({"a": [1, 2], "b c": ["x", "y z"]})


def render(returned: object, kind: str, separator: str = " ", *, safe: bool = False) -> Rendered:
    return renderer({"format": kind, "separator": separator, "safe": safe})(returned)


# Text


def test_the_separator_is_the_jobs() -> None:
    assert render(TABLE, "text", ",").data == b"1,x\n2,y z\n"
    assert render(pd.DataFrame({"a": ["1,5"]}), "text", ",").data == b'"1,5"\n'
    assert render(TABLE, "text").data == b'1 x\n2 "y z"\n'


def test_a_header_stands_apart_before_the_rows() -> None:
    data = render(TABLE, "headed").data
    assert data == HEADER_LENGTH.pack(8) + b'a "b c"\n' + b'1 x\n2 "y z"\n'
    assert render(["x"], "headed").data == HEADER_LENGTH.pack(0) + b"x\n"
    assert render(TABLE[:0], "headed") == (b"", 0, 0)
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", 3)]))
    assert render(levels, "headed", ",").data == HEADER_LENGTH.pack(8) + b"a_b,a_3\n" + b"1,2\n"


def test_line_breaks_inside_rows_are_counted_or_written_as_text() -> None:
    assert render(["a\nb", "c", "d\n"], "text") == (b"a\nb\nc\nd\n\n", 3, 2)
    assert render(["a\nb", "c\r"], "text", safe=True) == (b"a\\nb\nc\\r\n", 2, 0)
    assert render(pd.DataFrame({"a": ["x\ny"], "b": [1]}), "text", safe=True).data == b"x\\ny 1\n"
    assert render(pd.DataFrame({"a": ["x\ny"]}), "text") == (b'"x\ny"\n', 1, 0)  # a quoted one is read back as it was


# JSON lines


@pytest.mark.parametrize(
    "returned, lines",
    [
        (TABLE, [{"a": 1, "b c": "x"}, {"a": 2, "b c": "y z"}]),
        ([{"a": float("nan"), "b": [np.float64(1.5), np.array([1, 2])]}], [{"a": None, "b": [1.5, [1, 2]]}]),
        (["plain", 5, None, 2.5, ("a", 1)], ["plain", 5, None, 2.5, ["a", 1]]),
        (['{"ready": 1}', '[1,\n2]', "{not"], [{"ready": 1}, [1, 2], "{not"]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (pd.Series([1.0, None]), [1.0, None]),
        (pd.DataFrame({"t": DATES}), [{"t": "2020-01-02T00:00:00"}, {"t": None}]),
        (pd.DataFrame({"i": pd.array([1, None], dtype="Int64")}), [{"i": 1}, {"i": None}]),
        ([{1: datetime.date(2020, 1, 2)}, {(1, 2): object}], [{"1": "2020-01-02"}, {"(1, 2)": str(object)}]),
        (["two\nlines"], ["two\nlines"]),
    ],
)  # fmt: skip
def test_json_lines(returned: Any, lines: list[object]) -> None:
    made = render(returned, "jsonl")
    assert [json.loads(line) for line in made.data.decode().splitlines()] == lines
    assert made.rows == len(lines)
    assert made.data.count(b"\n") == len(lines)


# Arrow


def read(made: Rendered) -> pa.Table:
    return pa.ipc.open_stream(made.data).read_all()


@pytest.mark.parametrize(
    "returned, columns",
    [
        (TABLE, {"a": [1, 2], "b c": ["x", "y z"]}),
        (pd.DataFrame({"c": pd.Categorical(["x", "y"])}), {"c": ["x", "y"]}),
        (pd.DataFrame({"m": [1, "x", None]}), {"m": ["1", "x", None]}),
        ([{"a": 1}, {"b": "x"}], {"a": [1, None], "b": [None, "x"]}),
        ([("f", 1), ("g", 2)], {"0": ["f", "g"], "1": [1, 2]}),
        (np.array([[1.5, 2.0]]), {"0": [1.5], "1": [2.0]}),
        (["a", "b"], {"value": ["a", "b"]}),
        ([np.int64(5), 2], {"value": [5, 2]}),
        ([object, 1], {"value": [str(object), "1"]}),
    ],
)
def test_arrow(returned: Any, columns: dict[str, list[object]]) -> None:
    made = render(returned, "parquet")
    assert read(made).to_pydict() == columns
    assert made.rows == len(next(iter(columns.values())))


def test_no_row_is_no_byte_and_equal_names_are_refused() -> None:
    assert render([], "parquet") == (b"", 0, 0)
    with pytest.raises(BadReturn, match="same name"):
        render(pd.DataFrame([[1, 2]], columns=["a", "a"]), "parquet")


def test_a_worker_tells_once_that_json_has_no_infinity(caplog: pytest.LogCaptureFixture) -> None:
    json_lines._tell_of_infinity.cache_clear()
    for _ in range(2):
        assert render([{"a": float("inf"), "b": float("nan")}], "jsonl").data == b'{"a": null, "b": null}\n'
    assert [record.message for record in caplog.records] == [
        "rows hold infinite numbers, which JSON doesn't have: they are null in the output"
    ]


@pytest.mark.parametrize("kind", ["text", "headed", "jsonl", "parquet"])
def test_what_has_no_rows_is_refused_in_every_format(kind: str) -> None:
    with pytest.raises(BadReturn, match="NoneType"):
        render(None, kind)
