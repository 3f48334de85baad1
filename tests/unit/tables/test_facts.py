"""What the reference's engine makes of a table (§4.2 to §4.5): each case was seen there, cell by cell."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.filters import parse_filter
from tests.unit.tables.cutting import Cut, folder_with, values

NAN = math.nan
READ = "read_delimited"


def read(content: bytes | str, *steps: Any, **options: Any) -> pd.DataFrame:
    return Cut(folder_with({"a.csv": content}), [{READ: options} if options else READ, *steps]).frame


def same(found: list[Any], expected: list[Any]) -> bool:
    """Whether these are the same values of the same types; NaN is NaN, and None is not."""
    pairs = list(zip(found, expected, strict=True))
    return all(
        type(one) is type(other) and (one == other or (one != one and other != other))  # noqa: PLR0124 - NaN
        for one, other in pairs
    )


def column(cells: list[str], **options: Any) -> pd.Series:
    return read("x,y\n" + "".join(f"{cell},-\n" for cell in cells), **options)["x"]


@pytest.mark.parametrize("cells, dtype, expected", [
    (["1", "0"], "bool", [True, False]),
    (["1", "1"], "bool", [True, True]),
    (["True", "f", "Yes", "NO", "t", "0", "Y"], "bool", [True, False, True, False, True, False, True]),
    (["True", "yes"], "object", ["True", "yes"]),
    (["True", "2"], "object", ["True", "2"]),
    (["2", "3"], "int64", [2, 3]),
    (["007", " 5", "+8", "-9"], "int64", [7, 5, 8, -9]),
    (["2", "", "3"], "float64", [2.0, NAN, 3.0]),
    (["1", "2.5", "1e5", ".5", "5."], "float64", [1.0, 2.5, 100000.0, 0.5, 5.0]),
    (["1.5", "nan", "inf"], "float64", [1.5, NAN, math.inf]),
    (["12", "99999999999999999999"], "object", [12, 99999999999999999999]),
    (["2", "NA", "NULL", "null", "N/A"], "object", ["2", "NA", "NULL", "null", "N/A"]),
    (["0x1F", "1_0"], "object", ["0x1F", "1_0"]),
    (["x", "", "z"], "object", ["x", None, "z"]),
    (["", ""], "object", [None, None]),
    (["1", ""], "object", [True, None]),
])  # fmt: skip
def test_types_are_inferred(cells: list[str], dtype: str, expected: list[Any]) -> None:
    found = column(cells)
    assert str(found.dtype) == dtype
    assert same(found.tolist(), expected), found.tolist()


@pytest.mark.parametrize("cells, expected", [
    (["2020-01-02", "2021-03-04"], ["2020-01-02", "2021-03-04"]),
    (["2020/01/02"], ["2020-01-02"]),
    (["2020-1-2"], ["2020-01-02"]),
    (["2020-01-02T03:04:05", "2020-01-02"], ["2020-01-02T03:04:05", "2020-01-02"]),
    (["2020-01-02 03:04:05"], ["2020-01-02T03:04:05"]),
    (["2020-01-02T03:04:05.5"], ["2020-01-02T03:04:05.500000"]),
    (["2020-01-02T03:04:05Z", "2020-01-02T03:04:05+02:00"], ["2020-01-02T03:04:05", "2020-01-02T01:04:05"]),
    (["13/02/2020", "01/02/2020"], ["2020-02-13", "2020-02-01"]),
    (["1/2/2020", "1/13/2020"], ["2020-01-02", "2020-01-13"]),
    (["1/13/2020 3:04:05 PM"], ["2020-01-13T15:04:05"]),
    (["13/01/2020 03:04"], ["2020-01-13T03:04:00"]),
    (["2020-01-02", ""], ["2020-01-02", None]),
])  # fmt: skip
def test_dates_are_recognised(cells: list[str], expected: list[str | None]) -> None:
    found = column(cells)
    assert str(found.dtype) == "datetime64[ns]"
    assert [None if pd.isna(each) else each for each in found] == [
        None if text is None else datetime.fromisoformat(text) for text in expected
    ]


@pytest.mark.parametrize("cell", ["Jan 2 2020", "2020-01", "2020-01-02 03:04", "03:04:05", "2020-13-02", "2020.01.02"])
def test_these_are_no_dates(cell: str) -> None:
    assert column([cell]).tolist() == [cell]


def test_dates_of_which_nothing_tells_day_from_month_are_null() -> None:
    assert column(["01/02/2020", "02/03/2021"]).tolist() == [None, None]


@pytest.mark.parametrize("first, late, expected", [
    ("12", ["abc", "1.5", "5.0", "1e3", " 7", "1_000"], [NAN, 1.0, 5.0, 1000.0, 7.0, NAN]),
    ("1.5", ["2", "x", "inf"], [2.0, NAN, math.inf]),
    ("2020-01-02", ["x", "2020/01/03"], [pd.NaT, pd.NaT]),
    ("1", ["2", "True", "yes", "No"], [None, True, None, False]),
])  # fmt: skip
def test_what_comes_after_the_sample_and_does_not_fit_is_null(first: str, late: list[str], expected: list[Any]) -> None:
    cut = Cut(folder_with({"a.csv": "x,y\n" + f"{first},-\n" * 250 + "".join(f"{cell},-\n" for cell in late)}), [READ])
    assert same(cut.frame["x"].tolist()[250:], expected), cut.frame["x"].tolist()[250:]


def test_types_are_those_of_the_whole_table_in_every_mini_batch() -> None:
    content = "a,b\n" + "2.5,x\n" * 50 + "3,\n" * 50 + "4,y\n" * 50
    cut = Cut(folder_with({"a.csv": content}), [READ], 60)
    assert len(cut.frames) > 5
    assert {str(frame["a"].dtype) for frame in cut.frames if len(frame)} == {"float64"}
    assert {str(frame["b"].dtype) for frame in cut.frames if len(frame)} == {"object"}
    assert all(list(frame.index) == list(range(len(frame))) for frame in cut.frames)


def test_the_sample_goes_on_in_the_next_file() -> None:
    cut = Cut(folder_with({"a.csv": "x\n5\n", "b.csv": "x\nabc\n"}), [READ])
    assert [frame["x"].tolist() for frame in cut.frames] == [["5"], ["abc"]]


@pytest.mark.parametrize("content, names, rows", [
    ("a,b\nx\"y,2\n5\" pipe,3\n \"q\",4\n\"p\"q,5\n\"a\"\"b\",6\n", ["a", "b"],
     [('x"y', 2), ('5" pipe', 3), (' "q"', 4), ("pq", 5), ('a"b', 6)]),
    ("a,b\n\"x,2\nz,3\ny\",4\n", ["a", "b"], [('"x', 2), ("z", 3), ('y"', 4)]),
    ("a,b\n\"x\ny\",2\nz,3\n", ["a", "b"], [('"x', None), ('y"', 2), ("z", 3)]),
    ("a,b\r\n\"x\",2\r\nz,3\r\n", ["a", "b"], [("x", 2), ("z", 3)]),
    ("a,b\nx\ry,2\nz,3\n", ["a", "b"], [("x\ry", 2), ("z", 3)]),
    ("a,b\n5,2\n   \n\n3,4\n,\n5\n", ["a", "b"], [("5", 2), ("   ", None), ("3", 4), (None, None), ("5", None)]),
    ("a\n5\n\n\"\"\n3\n", ["a"], [("5",), ("",), ("3",)]),
    ("\n\na,b\n5,2\n", ["a", "b"], [(5, 2)]),
    ("a,b\n5,2,3\n4\n5,6\n7,8,9,7\n", ["a", "b", "Column3", "Column4"],
     [(5, 2, 3, None), (4, None, None, None), (5, 6, None, None), (7, 8, 9, 7)]),
    ("a,a,,b\n5,x,2,3\n", ["a", "a_1", "Column3", "b"], [(5, "x", 2, 3)]),
    ("a ; b\n5;2\n", ["a ; b"], [("5;2",)]),
    ("a,b\n5,x\0y\n3,4\n", ["a", "b"], [(5, "x\0y"), (3, "4")]),
    (b"\xef\xbb\xbfa,b\n5,2\n", ["a", "b"], [(5, 2)]),
])  # fmt: skip
def test_the_grammar(content: bytes | str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
    found = read(content)
    assert list(found.columns) == names
    assert values(found) == rows


def test_long_rows_behind_the_sample_add_columns_of_text() -> None:
    found = read("a,b\n" + "2,3\n" * 250 + "7,8,9,10\n")
    assert values(found)[-2:] == [(2, 3, None, None), (7, 8, "9", "10")]
    assert list(found.columns) == ["a", "b", "Column3", "Column4"]


def test_newlines_in_quotes_belong_to_the_field_when_told() -> None:
    found = read('"a\nx",b\n"x\ny",2\n"x\r\ny",2\nz,3\n', support_multi_line=True)
    assert list(found.columns) == ["a\nx", "b"]
    assert values(found) == [("x\ny", 2), ("x\r\ny", 2), ("z", 3)]


def test_the_headers_of_files() -> None:
    files = {"a.csv": "a,b\n5,x\n", "b.csv": "b,c\n2,y\n"}

    def rows(mode: str, **others: str) -> list[tuple[Any, ...]]:
        return Cut(folder_with({**files, **others}), [{READ: {"header": mode}}]).rows()

    assert rows("all_files_same_headers") == [(5, "x"), (2, "y")]
    assert rows("from_first_file") == [("5", "x"), ("b", "c"), ("2", "y")]
    assert rows("no_header") == [("a", "b"), ("5", "x"), ("b", "c"), ("2", "y")]
    cut = Cut(folder_with(files), [{READ: {"header": "all_files_different_headers"}}])
    assert [list(frame.columns) for frame in cut.frames] == [["a", "b", "c"]] * 2
    assert cut.rows() == [(5, "x", None), (None, "2", "y")]
    assert list(read("5,x\n", header="no_header").columns) == ["Column1", "Column2"]


def test_options_of_the_delimited_reader() -> None:
    assert values(read("a,b\n2,\n,x\n", empty_as_string=True)) == [("2", ""), ("", "x")]
    assert values(read("a,b\n2,\n,x\n", infer_column_types=False)) == [("2", None), (None, "x")]
    overrides = [{"columns": "a", "column_type": "string"}, {"columns": ["b"], "column_type": "float"}]
    typed = read("a,b\n1,2\n0,7\n", infer_column_types={"sample_size": 10, "column_type_overrides": overrides})
    assert [str(dtype) for dtype in typed.dtypes] == ["object", "float64"]
    assert values(typed) == [("1", 2.0), ("0", 7.0)]
    assert values(read('a||b\n5||x\n"q||r"||y\n', delimiter="||")) == [("5", "x"), ("q||r", "y")]
    with_path = read("a\n5\n", include_path_column=True)
    assert list(with_path.columns) == ["Path", "a"]
    assert with_path["Path"][0].endswith("/a.csv")


@pytest.mark.parametrize("content, encoding, expected", [
    ("a,b\n5,é\n3,4\n".encode("utf-16"), "utf16", "é"),
    ("a,b\n5,é\n3,4\n".encode("utf-16-le"), "utf-16", "é"),
    ("a,b\n5,é\n3,4\n".encode("utf-16-be"), "utf16", "a"),
    (b"a,b\n5,\xe9\x80\n3,4\n", "latin1", "é€"),
    (b"a,b\n5,\xe9\x80\n3,4\n", "iso-8859-1", "é€"),
    (b"a,b\n5,\xe9\x80\n3,4\n", "windows1252", "é€"),
    (b"a,b\n5,\x81\n3,4\n", "windows-1252", "\x81"),
    ("a,b\n5,é\n3,4\n".encode(), "utf8 bom", "é"),
])  # fmt: skip
def test_encodings(content: bytes, encoding: str, expected: str) -> None:
    if encoding == "utf16" and content.startswith(b"\0a"):
        content, expected = b"\xfe\xff" + content, "é"
    for size in (1, 3, 7, 1 << 20):
        cut = Cut(folder_with({"a.csv": content}), [{READ: {"encoding": encoding}}], size)
        assert cut.rows() == [(5, expected), (3, "4")], size


@pytest.mark.parametrize("content, encoding", [(b"a,b\n\xff\xfe,2\n", "utf8"), (b"a,b\n5,\xe9\n", "ascii")])
def test_text_in_another_encoding_is_refused(content: bytes, encoding: str) -> None:
    with pytest.raises(ValueError, match="set its encoding"):
        read(content, encoding=encoding)


# Mini-batches (§4.5)


def iris(rows: int, first: int) -> str:
    """A table like the reference's sample: long lines of one length, and no header."""
    return "".join(f"{number % 9}.5,{'x' * (first - 5)}\n" for number in range(rows))


@pytest.mark.parametrize("size, counts", [
    (10_240, [9] * 7 + [10, 1]),
    ("10kb", [9] * 7 + [10, 1]),
    (20_480, [18, 18, 18, 19, 1]),
    (65_536, [58, 16]),
])  # fmt: skip
def test_a_range_owns_the_rows_that_begin_in_it(size: int | str, counts: list[int]) -> None:
    # 75 lines of 84,032 bytes in all, of which the first is taken for a header.
    lines = [1_121] * 51 + [1_118] * 16 + [1_122] + [1_119] * 6
    lines.append(84_032 - sum(lines))
    content = "".join(f"2.5,{'x' * (length - 5)}\n" for length in lines)
    assert len(content) == 84_032
    cut = Cut(folder_with({"a.csv": content}), [READ], size)
    assert sum(len(frame) for frame in cut.frames) == 74
    assert [len(frame) for frame in cut.frames] == counts


@pytest.mark.parametrize("size", [1024, 100])
def test_ranges_without_a_row_are_empty(size: int) -> None:
    content = iris(75, 1_120)
    cut = Cut(folder_with({"a.csv": content}), [READ], size)
    assert len(cut.frames) == -(-len(content) // size)
    assert sum(not len(frame) for frame in cut.frames) == len(cut.frames) - 74
    assert cut.rows() == Cut(folder_with({"a.csv": content}), [READ]).rows()


def test_ranges_never_cross_files() -> None:
    cut = Cut(folder_with({f"{number}.csv": "x\n5\n6\n" for number in range(5)}), [READ], "1mb")
    assert [len(frame) for frame in cut.frames] == [2] * 5


# Steps (§4.2)

TABLE = "x,y,t\n1,2,a\n5,6,b\n7,2,a\n"


@pytest.mark.parametrize("step, expected", [
    ({"keep_columns": "y"}, [(2,), (6,), (2,)]),
    ({"keep_columns": ["y", "x"]}, [(1, 2), (5, 6), (7, 2)]),
    ({"keep_columns": ["y", "gone"]}, [(2,), (6,), (2,)]),
    ({"keep_columns": {"pattern": "^[xy]$"}}, [(1, 2), (5, 6), (7, 2)]),
    ({"drop_columns": {"pattern": "^X", "ignore_case": True}}, [(2, "a"), (6, "b"), (2, "a")]),
    ({"drop_columns": {"pattern": "t", "invert": True}}, [("a",), ("b",), ("a",)]),
    ({"drop_columns": ["x", "y", "gone"]}, [("a",), ("b",), ("a",)]),
    ({"take": 2}, [(1, 2, "a"), (5, 6, "b")]),
    ({"skip": 2}, [(7, 2, "a")]),
    ({"filter": 'col("x") > 1 and col("y") == 6'}, [(5, 6, "b")]),
    ({"filter": '(col("x") > 6) | (col("t") == "b")'}, [(5, 6, "b"), (7, 2, "a")]),
    ({"filter": 'not (col("y") == 2)'}, [(5, 6, "b")]),
    ({"filter": 'col("t") > 1'}, []),
    ({"filter": 'col("t") == 1'}, []),
    ({"filter": '1 < col("x") <= 5'}, [(5, 6, "b")]),
    ({"filter": 'col("x") - col("y") * 2 < -6 or is_null(col("x") + 1)'}, [(5, 6, "b")]),
])  # fmt: skip
def test_steps_on_rows_and_columns(step: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    for size in (4, "rows:2", 1 << 20):
        assert Cut(folder_with({"a.csv": TABLE}), [READ, step], size).rows() == expected, size


def test_a_filter_that_makes_no_sense_is_refused() -> None:
    for text, told in (
        ('col("b") == "x" or "y"', "'y' is not a comparison"),
        ('not 1', "1 is not a comparison"),
        ('(col("a") > 1) & (col("b") + 1)', r"col\('b'\) \+ 1 is not a comparison"),
        ('col("a") > 1 & col("b") == 2', r"1 is not a comparison.* need parentheses"),
        ('col("flag") & col("a") > 1', r"col\('flag'\) & col\('a'\) is compared with something"),
        ('~col("flag") == 1', r"~col\('flag'\) is compared with something"),
        ('col("b") != None', r'nothing equals None: use is_null\('),
        ('None < col("b") + 1', r'nothing equals None: use is_null\('),
        ('col("a") + 1', "a filter compares columns"),
        ('is_null(5)', r"is_null\(\) with such arguments is unknown"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            parse_filter(text)


def test_a_filter_may_join_columns_and_compare_comparisons() -> None:
    for text in (
        'col("flag") and col("x") > 1', 'not col("flag")', '(col("a") > 1) == False', 'is_null(col("a")) == False',
        '(col("a") > 1) + (col("b") > 1) >= 1',
        'col("a") == -1 or col("b") == "x" and not is_null(col("c") / 2)',
    ):  # fmt: skip
        parse_filter(text)


@pytest.mark.parametrize("columns", ["gone", ["gone"], {"pattern": "gone"}])
def test_a_table_of_which_no_column_is_kept_is_an_error(columns: Any) -> None:
    folder = folder_with({"a.csv": TABLE})
    with pytest.raises(ValueError, match="keep_columns names 'gone'; there are x, y, t"):
        Cut(folder, [READ, {"keep_columns": columns}])


def test_dates_that_nanoseconds_do_not_reach_are_null() -> None:
    assert column(["2020-01-02", "9999-12-31", "1677-01-01"]).tolist() == [pd.Timestamp("2020-01-02"), pd.NaT, pd.NaT]


@pytest.mark.parametrize("steps, expected", [
    ([{"skip": 2}, {"take": 3}], [2, 3, 4]),
    ([{"take": 6}, {"skip": 2}], [2, 3, 4, 5]),
    ([{"filter": 'col("n") > 3'}, {"take": 2}], [4, 5]),
    ([{"skip": 1}, {"filter": 'col("n") > 3'}, {"skip": 1}], [5, 6, 7, 8, 9]),
])  # fmt: skip
def test_rows_are_counted_over_all_files(steps: list[Any], expected: list[int]) -> None:
    files = {f"{part}.csv": "n,m\n" + "".join(f"{number},5\n" for number in numbers)
             for part, numbers in enumerate([range(4), range(4, 5), range(5, 10)])}  # fmt: skip
    for size in (5, "rows:2", 1 << 20):
        cut = Cut(folder_with(files), [READ, *steps], size)
        if cut.plan.is_indivisible:
            pieces = [(path.decode(), 0, -1, False, -1) for path in cut.files]
            assert cut.table.read(pieces)["n"].tolist() == expected
        else:
            assert [row[0] for row in cut.rows()] == expected, size


def convert(kind: Any, content: str, **options: Any) -> list[Any]:
    options = options or {"infer_column_types": False}
    found = read(content, {"convert_column_types": [{"columns": "x", "column_type": kind}]}, **options)
    return [None if pd.isna(value) is True else value for value in found["x"]]


def test_columns_are_converted_and_what_does_not_fit_is_null() -> None:
    assert convert("int", "x\n7\n1.7\nabc\n") == [7.0, 1.0, None]
    assert convert("float", "x\n7\n1.7\nabc\n") == [7.0, 1.7, None]
    assert convert("boolean", "x\nyes\nTrue\n0\n") == [None, True, False]
    words = {"true_values": ["yes"], "false_values": "no"}
    assert convert({"boolean": words}, "x\nyes\nno\nmaybe\n") == [True, False, None]
    assert convert({"boolean": {**words, "mismatch_as": "true"}}, "x\nyes\nno\nmaybe\n") == [True, False, True]
    days = {"datetime": {"formats": ["%d/%m/%Y", "%Y-%m-%d %H:%M"]}}
    assert convert(days, "x\n01/02/2020\n2020-01-02 03:04\nx\n") == [
        pd.Timestamp("2020-02-01"), pd.Timestamp("2020-01-02T03:04"), None,
    ]  # fmt: skip
    clock = {"datetime": {"formats": "%H:%M", "date_constant": "2020-01-01"}}
    assert convert(clock, "x\n03:04\n") == [pd.Timestamp("2020-01-01T03:04")]
    inferred = {"infer_column_types": True}
    assert convert("string", "x\n1\n0\n", **inferred) == ["True", "False"]
    assert convert("string", "x\n1.0\n2.5\n", **inferred) == ["1", "2.5"]
    assert convert("string", "x\n2020-01-02\n", **inferred) == ["2020-01-02T00:00:00+00:00"]
    assert convert("int", "x\n1.7\n-1.7\n", **inferred) == [1, -1]


def test_a_random_sample_is_the_same_for_every_try_and_differs_between_ranges() -> None:
    content = "n,m\n" + "".join(f"{number},7\n" for number in range(2, 2002))
    folder = folder_with({"a.csv": content})
    step = {"take_random_sample": {"probability": 0.5, "seed": 1}}
    first, again = Cut(folder, [READ, step], 2000), Cut(folder, [READ, step], 2000)
    assert first.rows() == again.rows()
    assert 800 < len(first.rows()) < 1200
    drawn = [tuple(row[0] - frame["n"][0] for row in values(frame))[:20] for frame in first.frames[:-1]]
    assert len(set(drawn)) == len(drawn)
    cut = Cut(folder, [READ, {"take_random_sample": {"probability": 0.5}}], 2000)
    pieces = [(path.decode(), 0, -1, False, -1) for path in cut.files]
    assert cut.table.read(pieces).equals(cut.table.read(pieces))  # the seed is drawn when the job begins


def test_json_lines() -> None:
    lines = '{"a":5,"b":"x","c":1.5,"d":true,"f":{"g":1}}\n{"a":2,"b":null,"z":7}\n{"b":"y"}\n'
    found = Cut(folder_with({"a.jsonl": lines}), ["read_json_lines"]).frame
    assert list(found.columns) == ["a", "b", "c", "d", "f", "z"]
    assert values(found) == [
        (5.0, "x", 1.5, True, {"g": 1}, None), (2.0, None, None, None, None, 7.0), (None, "y", None, None, None, None),
    ]  # fmt: skip
    broken = folder_with({"a.jsonl": '{"a":5}\nxx\n[1]\n5\n{"a":3}\n'})
    with pytest.raises(ValueError, match="not a JSON object"):
        Cut(broken, ["read_json_lines"])
    drop = {"read_json_lines": {"invalid_lines": "drop", "include_path_column": True}}
    assert [row[1] for row in Cut(broken, [drop]).rows()] == [5, 3]
    late = '{"b":5}\n' * 300 + '{"b":"x","c":1}\n'
    assert values(Cut(folder_with({"a.jsonl": late}), ["read_json_lines"]).frame)[-1] == (None, 1)


# Keys in paths (§4.4)

STORES = {"2020/01/p_q.csv": "x,y\n2,3\n", "2021/02/p_r.csv": "x,y\n5,6\n"}


def extract(text: str) -> dict[str, Any]:
    return {"extract_columns_from_partition_format": {"partition_format": text}}


def test_read_then_extract_gives_texts_behind_the_data() -> None:
    steps = [{READ: {"include_path_column": True}}, extract("{year}/{m}/{a}_{b}.csv"), {"drop_columns": "Path"}]
    cut = Cut(folder_with(STORES), steps)
    assert list(cut.frames[0].columns) == ["x", "y", "year", "m", "a", "b"]
    assert cut.rows() == [(2, 3, "2020", "01", "p", "q"), (5, 6, "2021", "02", "p", "r")]


def test_read_then_extract_without_the_path_column_gives_nothing() -> None:
    assert Cut(folder_with(STORES), [READ, extract("{year}/{m}/*")]).rows() == [(2, 3, None, None), (5, 6, None, None)]
    keyed = Cut(folder_with(STORES), [READ, extract("{year}/{m}/*")], keys=["m"])  # but a job by keys has them
    assert keyed.rows() == [(2, 3, "2020", "01"), (5, 6, "2021", "02")]


def test_extract_then_read_gives_inferred_types_in_front() -> None:
    cut = Cut(folder_with(STORES), [extract("{year}/{m}/{a}_{b}.csv"), READ], keys=["b", "year"])
    assert list(cut.frames[0].columns) == ["year", "m", "a", "b", "x", "y"]
    assert cut.rows() == [(2020, 1, "p", "q", 2, 3), (2021, 2, "p", "r", 5, 6)]
    assert cut.table.path_keys.typed(["q", "2020"]) == {"b": "q", "year": 2020}


def test_a_text_among_the_numbers_of_paths_is_null_in_its_column_and_stays_a_key() -> None:
    steps, first = [extract("{store}/*.csv"), READ], {"100/a.csv": "x\n1\n", "101/a.csv": "x\n2\n"}
    cut = Cut(folder_with(first), steps, keys=["store"])
    late = Path(cut.plan.root) / "online" / "a.csv"
    late.parent.mkdir()
    late.write_text("x\n3\n")
    frame = cut.table.read([(str(late), 0, 4, True, 0)])
    assert (values(frame), cut.table.path_keys.typed(["online"])) == ([(None, 3)], {"store": "online"})
    assert cut.table.path_keys.typed(["101"]) == {"store": 101}


def test_a_date_in_the_path_comes_last() -> None:
    steps = [{READ: {"include_path_column": True}}, extract("{d:yyyy/MM}/{a}_{b}.csv"), {"drop_columns": "Path"}]
    cut = Cut(folder_with(STORES), steps)
    assert list(cut.frames[0].columns) == ["x", "y", "a", "b", "d"]
    assert cut.rows()[1][-1] == pd.Timestamp("2021-02-01")


def test_a_path_that_does_not_fit_has_no_keys_or_is_an_error() -> None:
    steps = [{READ: {"include_path_column": True}}, extract("{year}/{m}/{a}_x.csv"), {"drop_columns": "Path"}]
    assert Cut(folder_with(STORES), steps).rows() == [(2, 3, None, None, None), (5, 6, None, None, None)]
    with pytest.raises(ValueError, match="doesn't fit the partition format"):
        Cut(folder_with(STORES), [extract("{year}/{m}/{a}_x.csv"), READ])


def test_a_name_that_the_data_have_as_well_is_an_error() -> None:
    with pytest.raises(ValueError, match="'y', which the data have as well"):
        Cut(folder_with(STORES), [READ, extract("{y}/{m}/*")])
    with_path = {READ: {"include_path_column": True}}
    with pytest.raises(ValueError, match="the data have a column 'Path', as that of include_path_column"):
        Cut(folder_with({"a.csv": "Path,x\np,1\n"}), [with_path])
    with pytest.raises(InvalidInput, match="the partition format names a column 'Path'"):
        Cut(folder_with(STORES), [with_path, extract("{Path}/{m}/*")])


@pytest.mark.parametrize("document, place", [
    ("paths: [{file: a, folder: b}]", "/paths/0"),
    ("paths: [{files: a}]", "/paths/0/files"),
    ("paths: []", "/paths"),
    ("paths: [{folder: .}]\npath: a", "/path"),
    ("paths: [{file: '*.csv'}]", "/paths/0/file"),
    ("paths: [{file: 'hdfs://x/y'}]", "/paths/0/file"),
    ("paths: [{folder: .}]\nquery_source: {}", "/query_source"),
    ("paths: [{folder: .}]\ntype: table", "/type"),
    ("paths: [{folder: .}]\ntransformations: [read_csv]", "/transformations/0/read_csv"),
    ("paths: [{folder: .}]\ntransformations: [{read_delimited: {header: maybe}}]",
     "/transformations/0/read_delimited/header"),
    ("paths: [{folder: .}]\ntransformations: [{take: 5}]", "/transformations/0"),
    ("paths: [{folder: .}]\ntransformations: [read_parquet, {filter: 'import os'}]", "/transformations/1/filter"),
    ("paths: [{folder: .}]\ntransformations: [read_parquet, {filter: '__import__(\"os\")'}]",
     "/transformations/1/filter"),
    ("paths: [{folder: .}]\ntransformations: [{extract_columns_from_partition_format: '{a:yyyy}/{b:MM}'}]",
     "/transformations/0/extract_columns_from_partition_format/partition_format"),
    ("paths: [{folder: .}]\ntransformations: [{read_delta_lake: {}}]", "/transformations/0/read_delta_lake"),
    ("paths: [{folder: .}]\ntransformations: [read_parquet, {convert_column_types: [{columns: a, column_type: x}]}]",
     "/transformations/1/convert_column_types/0/column_type"),
])  # fmt: skip
def test_what_an_mltable_file_may_not_hold_is_told_with_its_place(document: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cut(folder_with({"b.csv": "x\n"}, mltable=document))
    assert [f"MLTable, {place}:" in problem.message for problem in caught.value.problems] == [True]


@pytest.mark.parametrize("size, unit", [("500kb", "bytes"), ("rows:5", "rows")])
def test_files_that_are_no_table_have_mini_batches_of_so_many_files(size: str, unit: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cut(folder_with({"a.txt": "x"}), [], size)
    (problem,) = caught.value.problems
    assert problem.pointer == "/mini_batch_size"
    assert problem.message == f"{unit} apply to tables, and input 'data' is a list of files"
    assert "mini_batch_size: 10" in str(problem.hint)


def test_a_table_is_not_cut_by_sizes_that_the_job_chooses() -> None:
    with pytest.raises(InvalidInput) as caught:
        Cut(folder_with({"a.csv": "x\n1\n"}), ["read_delimited"], "auto")
    (problem,) = caught.value.problems
    assert problem.pointer == "/mini_batch_size"
    assert problem.message == "auto applies to lists of files, and input 'data' is a table"
    assert "rows:500; `parallelrun tune" in str(problem.hint)
