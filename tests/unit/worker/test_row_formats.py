"""Rows with a header, as JSON and as Arrow: what of run()'s return stands in a segment."""

from __future__ import annotations

import array
import csv
import datetime
import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from parallelrun_worker.rows import BadReturn, Rendered, renderer
from parallelrun_worker.rows.formats.text import HEADER_LENGTH
from parallelrun_worker.rows.returned import as_rows
from parallelrun_worker.tables.data_warnings import DataWarnings

DATES = pd.Series(["2020-01-02", None], dtype="datetime64[ns]")
TABLE = pd.DataFrame({"a": [1, 2], "b c": ["x", "y z"]})


def render(returned: object, kind: str, separator: str = " ", *, safe: bool = False) -> Rendered:
    header, row_format = kind == "headed", "text" if kind == "headed" else kind
    output = {"format": row_format, "header": header, "separator": separator, "safe": safe}
    return renderer(output).render(returned)


# Text


def test_the_separator_is_the_jobs() -> None:
    assert render(TABLE, "text", ",").data == b"1,x\n2,y z\n"
    assert render(pd.DataFrame({"a": ["1,5"]}), "text", ",").data == b'"1,5"\n'
    assert render(TABLE, "text").data == b'1 x\n2 "y z"\n'


class OldTable(pd.DataFrame):
    """Its to_csv() knows what that of pandas 1.0 knew, as far as we use it."""

    def to_csv(self, *, sep: str, header: bool, index: bool) -> str:  # type: ignore[override]
        return str(super().to_csv(sep=sep, header=header, index=index))


def test_a_table_of_an_old_pandas_becomes_text() -> None:
    assert render(OldTable({"a": [1], "b": ["x"]}), "text").data == b"1 x\n"


def test_a_header_stands_apart_before_the_rows() -> None:
    data = render(TABLE, "headed").data
    assert data == HEADER_LENGTH.pack(8) + b'a "b c"\n' + b'1 x\n2 "y z"\n'
    assert render(["x"], "headed").data == HEADER_LENGTH.pack(0) + b"x\n"
    assert render(TABLE[:0], "headed") == Rendered(b"", 0)
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", 3)]))
    assert render(levels, "headed", ",").data == HEADER_LENGTH.pack(8) + b"a_b,a_3\n" + b"1,2\n"


def test_line_breaks_inside_rows_are_counted_or_written_as_text() -> None:
    assert render(["a\nb", "c", "d\n"], "text") == Rendered(b"a\nb\nc\nd\n\n", 3, 2)
    assert render(["a\nb", "c\r"], "text", safe=True) == Rendered(b"a\\nb\nc\\r\n", 2, 0)
    assert render(pd.DataFrame({"a": ["x\ny"], "b": [1]}), "text", safe=True).data == b"x\\ny 1\n"
    arrays = render(pd.DataFrame({"a": [np.eye(2), np.arange(40), LONG], "b": 1}), "text", safe=True)
    assert (arrays.data.count(b"\n"), arrays.shortened) == (3, 1)
    returns = pd.DataFrame({"a\rb": ["x\ry", 'q"\r', "\r", "u\r\nv"], "b": ["\r,", "z", None, "w"]})
    for kind in ("text", "headed"):
        text = render(returns, kind, ",").data[HEADER_LENGTH.size if kind == "headed" else 0 :].decode()
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert rows[-4:] == [["x\ry", "\r,"], ['q"\r', "z"], ["\r", ""], ["u\r\nv", "w"]]
        assert rows[:-4] == ([["a\rb", "b"]] if kind == "headed" else [])
    quoted = render(pd.DataFrame({"a": ["x\ny"]}), "text")
    assert quoted == Rendered(b'"x\ny"\n', 1, 0)  # it is read back as it was


LONG = np.arange(1001)
LOOP: list[object] = ["..."]
LOOP.append(LOOP)


@pytest.mark.parametrize("returned, shortened", [
    (np.zeros((3, 1001)), 3),
    ([LONG, LONG[1:], "Wait ...", ("a", LONG), ("Wait ...", LONG[:5]), {"v": [LONG]}, pd.Series(LONG)], 4),
    (pd.DataFrame({"n": [1, 2, 3], "v": [LONG, LONG[:3], "..."], "t": ["...", "...", "x"]}), 1),
    (np.array(["Wait ...", "x"]), 0),
    (pd.DataFrame({"t": ["Wait ..."]}), 0),
    ([LONG.tolist()], 0),
    ([LOOP], 0),
])  # fmt: skip
def test_rows_with_arrays_of_which_the_text_leaves_out_values_are_counted(returned: Any, shortened: int) -> None:
    assert render(returned, "text").shortened == shortened
    assert render(returned, "headed").shortened == shortened


# JSON lines

TIMES = np.array(["2024-01-02T03:04:05", "NaT", "2024-01-02T03:04:05.123456789"], "M8[ns]")
TIMES_AS_TEXT = ["2024-01-02T03:04:05", None, "2024-01-02T03:04:05.123456789"]
RECORDS = pd.DataFrame({"t": TIMES, "n": [1, 2, 3]}).to_records(index=False)
DATE, NOON = datetime.date(2024, 1, 1), datetime.datetime.fromisoformat("2024-01-01T12:00")


@pytest.mark.parametrize(
    "returned, lines",
    [
        (TABLE, [{"a": 1, "b c": "x"}, {"a": 2, "b c": "y z"}]),
        ([{"a": float("nan"), "b": [np.float64(1.5), np.array([1, 2])]}], [{"a": None, "b": [1.5, [1, 2]]}]),
        (["plain", 5, None, 2.5, ("a", 1)], ["plain", 5, None, 2.5, ["a", 1]]),
        (['{"ready": 1}', '[1,\n2]', "{not"], [{"ready": 1}, [1, 2], "{not"]),
        (['{"a": NaN}', "[1,\r-Infinity]", '[1e999,\n"NaN"]'], [{"a": None}, [1, None], [None, "NaN"]]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (pd.Series([1.0, None]), [1.0, None]),
        (pd.DataFrame({"t": DATES}), [{"t": "2020-01-02T00:00:00"}, {"t": None}]),
        (pd.DataFrame({"i": pd.array([1, None], dtype="Int64")}), [{"i": 1}, {"i": None}]),
        ([{1: datetime.date(2020, 1, 2)}, {(1, 2): object}], [{"1": "2020-01-02"}, {"(1, 2)": str(object)}]),
        ([{True: 1, None: float("nan")}, {True: 1, None: 2}], [{"true": 1, "null": None}, {"true": 1, "null": 2}]),
        (TIMES, TIMES_AS_TEXT),
        (TIMES.astype("M8[D]"), ["2024-01-02", None, "2024-01-02"]),
        (np.array([[TIMES[0]]]), [["2024-01-02T03:04:05"]]),
        ([{"t": TIMES[0], "all": TIMES}], [{"t": "2024-01-02T03:04:05", "all": TIMES_AS_TEXT}]),
        (RECORDS, [["2024-01-02T03:04:05", 1], [None, 2], ["2024-01-02T03:04:05.123456789", 3]]),
        (np.array([5_000_000_000], "m8[ns]"), ["0:00:05"]),
        ([array.array("d", [1.5])], [[1.5]]),
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
        (pd.DataFrame({"p": pd.period_range("2024-01", periods=2, freq="M")}), {"p": ["2024-01", "2024-02"]}),
        (pd.DataFrame({"m": [1, "x", None]}), {"m": ["1", "x", None]}),
        ([{"a": 1}, {"b": "x"}], {"a": [1, None], "b": [None, "x"]}),
        ([("f", 1), ("g", 2)], {"0": ["f", "g"], "1": [1, 2]}),
        (np.array([[1.5, 2.0]]), {"0": [1.5], "1": [2.0]}),
        (["a", "b"], {"value": ["a", "b"]}),
        ([np.int64(5), 2], {"value": [5, 2]}),
        ([object, 1], {"value": [str(object), "1"]}),
        ([DATE, NOON], {"value": ["2024-01-01", "2024-01-01 12:00:00"]}),
        ([NOON, DATE], {"value": ["2024-01-01 12:00:00", "2024-01-01"]}),
        (pd.DataFrame({"d": pd.Series([DATE, NOON], dtype=object)}), {"d": ["2024-01-01", "2024-01-01 12:00:00"]}),
        ([DATE, None], {"value": [DATE, None]}),
        ([DATE, pd.NaT], {"value": [DATE, None]}),
        ([DATE, NOON, pd.NaT, pd.NA], {"value": ["2024-01-01", "2024-01-01 12:00:00", None, None]}),
        (["/no-utf-8-\udcff"], {"value": ["/no-utf-8-\\udcff"]}),
        ([{"\udcff": 1}], {"\\udcff": [1]}),
    ],
)
def test_arrow(returned: Any, columns: dict[str, list[object]]) -> None:
    made = render(returned, "parquet")
    assert read(made).to_pydict() == columns
    assert made.rows == len(next(iter(columns.values())))


def test_values_that_parquet_has_no_type_for_are_told_and_written_as_text() -> None:
    warnings, fine = DataWarnings(), pd.Timestamp("2024-01-02T03:04:05.123456789")
    rows = [{"m": 1, "o": {"t": fine, "d": [fine]}, "n": None}, {"m": "x", "o": None, "n": None}]
    rendered = renderer(
        {"format": "parquet", "header": False, "separator": " ", "safe": False}, warnings=warnings
    ).render(rows)
    assert read(rendered).column("m").to_pylist() == ["1", "x"]
    assert read(rendered).column("o").to_pylist()[0] == {"t": fine, "d": [fine]}
    ((kind, _, column, what, _, times, *_),) = json.loads(warnings.take())
    assert (kind, column, times) == ("returned_text", "m", 2)
    assert "(int, str)" in what


@pytest.mark.parametrize("returned", [TIMES, np.array([TIMES]).T, TIMES - TIMES[0], RECORDS, list(TIMES)])
def test_times_of_numpy_are_times_in_parquet_with_all_their_digits(returned: Any) -> None:
    made = read(render(returned, "parquet")).columns[0]
    expected = returned["t"] if returned is RECORDS else np.asarray(returned).reshape(-1)
    assert made.null_count == 1
    assert (made.to_numpy()[[0, 2]] == expected[[0, 2]]).all()
    assert made.to_numpy().dtype == expected.dtype


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
def test_equal_names_are_refused_where_one_column_would_be_lost(kind: str, names: list[object]) -> None:
    with pytest.raises(BadReturn, match="same name"):
        render(pd.DataFrame([[1, 2]], columns=names), kind)
    assert render(pd.DataFrame([[1, 2]], columns=names), "headed").rows == 1


def test_tables_of_arrow_and_polars_are_tables_whose_whole_numbers_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    is_nested = pa.types.is_nested  # in pyarrow 15, not of lists of one length
    of_one_length = pa.types.is_fixed_size_list
    monkeypatch.setattr(pa.types, "is_nested", lambda type_: is_nested(type_) and not of_one_length(type_))
    table = pa.table({"a": [1, None], "t": ["x", None]})
    assert render(as_rows(table), "jsonl").data == b'{"a": 1, "t": "x"}\n{"a": null, "t": null}\n'
    assert render(as_rows(table.to_batches()[0]), "text").data == b"1 x\n \n"
    assert read(render(as_rows(table), "parquet")).to_pydict() == {"a": [1, None], "t": ["x", None]}
    assert as_rows(table.column("a")) == [1, None]
    pairs = pa.table({"p": pa.array([[(1 << 60) + 1, 2], None], pa.list_(pa.int64(), 2))})
    assert render(as_rows(pairs), "jsonl").data == b'{"p": [1152921504606846977, 2]}\n{"p": null}\n'
    nested = pa.table({"l": [[1, None], [2]], "o": [{"a": [3, None]}, None]})
    assert render(as_rows(nested), "jsonl").data == b'{"l": [1, null], "o": {"a": [3, null]}}\n{"l": [2], "o": null}\n'
    assert read(render(as_rows(nested), "parquet")).schema.types == nested.schema.types
    frame = pd.DataFrame({"a": [1]})
    assert as_rows(frame) is frame
    polars = pytest.importorskip("polars")
    assert render(as_rows(polars.from_arrow(table)), "jsonl").data == render(as_rows(table), "jsonl").data


def test_columns_of_polars_that_arrow_does_not_know_have_their_values() -> None:
    pl = pytest.importorskip("polars")
    objects = pl.Series([{1}, "x"], dtype=pl.Object)
    table = pl.DataFrame({"o": objects, "n": [1, None], "big": pl.Series([1 << 100, None], dtype=pl.Int128)})
    lines = [{"o": "{1}", "n": 1, "big": 1 << 100}, {"o": "x", "n": None, "big": None}]
    assert [json.loads(line) for line in render(as_rows(table), "jsonl").data.splitlines()] == lines
    assert as_rows(objects) == [{1}, "x"]
    assert as_rows(table["big"]) == [1 << 100, None]


def test_no_row_is_no_byte() -> None:
    assert render([], "parquet") == Rendered(b"", 0)


@pytest.mark.parametrize(
    "returned, data",
    [
        ([{"a": float("inf"), "b": float("nan")}, {"a": [-float("inf")]}], b'{"a": null, "b": null}\n{"a": [null]}\n'),
        (pd.DataFrame({"a": [np.inf, 1, -np.inf, np.nan]}), b'{"a": null}\n{"a": 1.0}\n{"a": null}\n{"a": null}\n'),
        ([{"a": np.float32("inf"), "b": np.array([np.inf])}], b'{"a": null, "b": [null]}\n'),
    ],
)
def test_json_lines_count_infinite_numbers_in_a_warning(returned: object, data: bytes) -> None:
    warnings = DataWarnings()
    write = renderer({"format": "jsonl"}, warnings=warnings).render

    assert write(returned).data == data
    [[kind, _, _, event, remedy, times, *_]] = json.loads(warnings.take())
    assert (kind, times) == ("returned_infinity", 2)
    assert "null was written for them" in event
    assert ".parquet" in remedy
    write([{"a": float("nan")}])
    assert not warnings


@pytest.mark.parametrize("kind", ["text", "headed", "jsonl", "parquet"])
def test_what_has_no_rows_is_refused_in_every_format(kind: str) -> None:
    with pytest.raises(BadReturn, match="NoneType"):
        render(None, kind)
