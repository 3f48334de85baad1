"""What run() may return, and the lines that it becomes."""

from __future__ import annotations

import collections
import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_worker.rows import BadReturn, renderer

render = renderer({"format": "text", "header": False, "separator": " ", "safe": False}).render


class Map(pd.DataFrame):
    """As libraries have them: a GeoDataFrame, for one."""


class Image(np.ndarray):
    """The same for arrays."""


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "returned, data, rows",
    [
        ([], b"", 0),
        ((), b"", 0),
        (["a", "b"], b"a\nb\n", 2),
        (("a",), b"a\n", 1),
        ([""], b"\n", 1),
        (["", ""], b"\n\n", 2),
        ([1, 2.5, None, True], b"1\n2.5\nNone\nTrue\n", 4),
        ([{"predictions": [1]}], b"{'predictions': [1]}\n", 1),
        ([(1, 2)], b"(1, 2)\n", 1),
        ([["a"]], b"['a']\n", 1),
        ([b"x"], b"b'x'\n", 1),
        (["é\U0001f600"], "é\U0001f600\n".encode(), 1),
        (Point(1, 2), b"1\n2\n", 2),
        (np.array([1, 2]), b"1\n2\n", 2),
        (np.array([1.5, 2.0]), b"1.5\n2.0\n", 2),
        (np.array(["a b", "c"]), b"a b\nc\n", 2),
        (np.array([[1, 2], [3, 4]]), b"[1 2]\n[3 4]\n", 2),
        (np.array([]), b"", 0),
        ([np.float64(1.5), np.int64(2), np.str_("x")], b"1.5\n2\nx\n", 3),
        (pd.Series(["a", "b"], index=[7, 8]), b"a\nb\n", 2),
        (pd.Series([], dtype=float), b"", 0),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y z"]}, index=[5, 6]), b'1 x\n2 "y z"\n', 2),
        (pd.DataFrame({"a": [1.5, None], "b": [True, False]}), b"1.5 True\n False\n", 2),
        (pd.DataFrame({"a": [1, 2]})[:0], b"", 0),
        (Map({"a": [1], "b": ["x y"]}), b'1 "x y"\n', 1),
        (np.array([1, 2]).view(Image), b"1\n2\n", 2),
        (pd.DataFrame(), b"", 0),
    ],
)
def test_what_has_rows_becomes_lines(returned: object, data: bytes, rows: int) -> None:
    assert render(returned)[:2] == (data, rows)


@pytest.mark.parametrize(
    "returned",
    [None, "text", b"bytes", 1, 1.5, True, {"a": 1}, {1, 2}, object(), iter([1]), (x for x in "ab"), range(3),
     np.array(5), np.float64(1.0), pd.NA, Exception("x"), len],
)  # fmt: skip
def test_what_has_no_rows_is_told_by_its_type(returned: object) -> None:
    with pytest.raises(BadReturn, match=type(returned).__name__):
        render(returned)


class Frame:
    """Looks like a DataFrame, and is none."""

    columns = ("a",)

    def to_csv(self) -> str:
        return "x"


def test_what_only_looks_like_a_table_is_none() -> None:
    with pytest.raises(BadReturn):
        render(Frame())


any_text = st.text(st.characters(exclude_characters="\n"), max_size=10) | st.text("a\udcff\ud83dé\r\0", max_size=5)


@given(rows=st.lists(any_text, max_size=8))
@settings(deadline=None)
def test_each_text_is_one_line_in_order(rows: list[str]) -> None:
    data, count, *_ = render(rows)
    assert count == len(rows)
    assert data.count(b"\n") == len(rows)
    if not any("\ud800" <= char <= "\udfff" for row in rows for char in row):
        assert data.decode().split("\n")[:-1] == rows


@given(name=st.binary(max_size=12).map(lambda name: name.replace(b"\n", b"x")))
def test_file_names_that_are_no_utf_8_come_back_as_they_were(name: bytes) -> None:
    assert render([name.decode("utf-8", "surrogateescape")])[:2] == (name + b"\n", 1)


def test_half_a_character_is_shown_and_harms_no_other_row() -> None:
    data, rows, *_ = render(["good é", "\ud83d"])
    assert (data, rows) == ("good é\n\\ud83d\n".encode(), 2)


@given(
    table=st.lists(
        st.tuples(st.integers(), st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)), max_size=6
    )
)
@settings(deadline=None, max_examples=60)
def test_tables_can_be_read_back_with_the_settings_that_all_consumers_use(table: list[tuple[int, str]]) -> None:
    frame = pd.DataFrame(table, columns=["n", "t"])
    data, count, *_ = render(frame)
    assert count == len(table)
    back = list(csv.reader(io.StringIO(data.decode()), delimiter=" "))
    assert back == [[str(number), text] for number, text in table]


def test_an_error_in_the_users_own_str_is_the_users() -> None:
    class Broken:
        def __str__(self) -> str:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        render([Broken()])
