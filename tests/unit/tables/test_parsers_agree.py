"""The fast parsers and the grammar make the same of a text: the same values, in columns of the same types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_worker.tables import assembling, by_arrow, by_pandas
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.parsers import read_exactly
from parallelrun_worker.tables.records import Grammar, NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.values import BadValue, Values

FAST = {"pyarrow": by_arrow.read_delimited, "pandas": by_pandas.read_delimited}

DATES = ("%Y-%m-%d", "%d/%m/%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z",
         "%m/%d/%Y %I:%M %p")  # fmt: skip
KINDS: list[Kind] = [
    {"kind": "int"}, {"kind": "float"}, {"kind": "string"}, {"kind": "bool"},
    {"kind": "bool", "true_values": ["yes", "1"], "false_values": ["no", "2"], "mismatch_as": "false"},
    {"kind": "datetime", "formats": [], "odd": "ambiguous_day"}, {"kind": "datetime", "formats": list(DATES[:3])},
    {"kind": "float", "odd": "exponent"}, {"kind": "bool", "odd": "truth", "example": "1"},
    {"kind": "bool", "true_values": ["True", "true", "TRUE"], "false_values": ["False", "false", "FALSE"]},
    {"kind": "int", "declared": True}, {"kind": "bool", "declared": True},
    *({"kind": "datetime", "formats": [form]} for form in DATES),
]  # fmt: skip

whole_numbers = st.one_of(
    st.integers(-9, 9), st.integers(-(1 << 64), 1 << 64), st.sampled_from([(1 << 53) + 1, (1 << 63) - 1, 1 << 63])
).map(str)
RULES: list[tuple[str, bool] | None] = [
    None, *((what, is_exact) for what in ("keep", "null", "error") for is_exact in (True, False)),
]  # fmt: skip
"""`on_mismatch`, and whether types were inferred without a loss; None: as in earlier releases."""

words = st.sampled_from([
    "0x1F", "1_0", "+5", "007", "-0", " 7", "8\t", "1e3", "5.", ".5", "1e400", "inf", "-Infinity", "nan", "NA", "null",
    "NAN", "nan(1)",
    "True", "f", "YES", " No", "yes", "no", "2", "1", "0", "é", "\u0661", "x", "-", "1.7", "9007199254740993.5",
])  # fmt: skip
dates = st.one_of(
    st.datetimes().flatmap(lambda when: st.sampled_from(DATES).map(when.strftime)),
    st.sampled_from(["2024-02-30", "2023-02-29", "2024-02-29", "2024-13-01", "2024-01-00", "1500-01-01", "9999-12-31",
                     "2024-1-2", " 2024-01-02", "2024-01-02 24:00:00", "2024-01-02T03:04:05.5", "2024-01-02 03:04:60",
                     "2024-01-02T03:04:05Z", "2024-01-02T03:04:05+02:00", "now",
                     "31/12/2024", "2024/01/02", "2O24-01-02"]),
)  # fmt: skip
numbers = st.one_of(st.floats().map(repr), st.integers(-99, 99).map(str), st.decimals(places=3).map(str))
texts = st.text("ab ,;\"'\r\n\t0é\0\u2028\ufeff", max_size=6)
POOLS = (whole_numbers, words, dates, numbers, texts)


@st.composite
def cells(draw: st.DrawFn) -> list[str]:
    """A column: of values that all look alike, or of several sorts; some come again and again."""
    pool = st.one_of(
        *draw(st.sets(st.sampled_from(range(len(POOLS))), min_size=1).map(lambda at: map(POOLS.__getitem__, at)))
    )
    found = draw(st.lists(st.one_of(pool, st.just("")) if draw(st.booleans()) else pool, min_size=1, max_size=6))
    return found * draw(st.sampled_from([1, 1, 3]))


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


WRITERS: list[Callable[[str], str]] = [str, quoted, lambda cell: quoted(cell) if set(cell) & set('",\r\n') else cell]


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, Schema]:
    """A text, and the columns that are to be read from it."""
    columns = draw(st.lists(cells(), min_size=1, max_size=4))
    length = min(map(len, columns))
    write = draw(st.sampled_from(WRITERS))
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    lines = [",".join(write(column[row]) for column in columns) for row in range(length)]
    text = newline.join(lines) + draw(st.sampled_from([newline, "", newline * 2, newline + '5,"open']))
    return text, Schema([f"c{at}" for at in range(len(columns))], [draw(st.sampled_from(KINDS)) for _ in columns])


def shown(frame: pd.DataFrame) -> list[tuple[str, list[Any]]]:
    """Types and values; NaN is NaN and not None, and there is one zero."""
    return [(str(frame[name].dtype), [_shown(value) for value in frame[name].tolist()]) for name in frame]


def _shown(value: Any) -> tuple[type, str]:
    return type(value), repr(value + 0 if isinstance(value, float) else value)


def read_whole(
    text: str,
    *kinds: Kind,
    multi_line: bool = False,
    empty_as_string: bool = False,
    rules: tuple[str, bool] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An example of a text with columns of these kinds, which is read as one block."""
    return example(
        table=(text, Schema([f"c{at}" for at in range(len(kinds))], list(kinds))),
        multi_line=multi_line,
        empty_as_string=empty_as_string,
        block=4 << 20,
        wide=1,
        rules=rules,
    )


@pytest.mark.parametrize("parser", FAST)
@given(
    table=tables(),
    multi_line=st.booleans(),
    empty_as_string=st.booleans(),
    block=st.sampled_from([20, 60, 4 << 20]),
    wide=st.sampled_from([1, 512]),
    rules=st.sampled_from(RULES),
)
@read_whole('5,"x\n', KINDS[0], KINDS[2], multi_line=True)
@read_whole('5,"x', KINDS[0], KINDS[2])
@read_whole('"x\ny"\nz\n', KINDS[2])
@read_whole('\n\r\n"x\r\ny"\r\n\nz', KINDS[2], multi_line=True)
@read_whole('"x"\n"', KINDS[2], multi_line=True)
@read_whole("9007199254740993\n5.0\n", KINDS[0])
@read_whole("1e30\n9007199254740993\n", KINDS[0])
@read_whole('1,"5', KINDS[0], KINDS[1], multi_line=True)
@read_whole('1,"5\n', KINDS[0], KINDS[1])
@read_whole("\n", KINDS[2], empty_as_string=True)
@read_whole('"",', KINDS[2], KINDS[2])
@read_whole("0\n0\n", KINDS[8], rules=("keep", True))
@read_whole("\ufeffx\ny\n", KINDS[2], rules=("keep", True))
@read_whole("1.5\nNAN\nnan(1)\n", KINDS[1], rules=("keep", True))
@read_whole("-0\n", KINDS[7], rules=("keep", True))
@read_whole('-0,x\n0x1F,"007"\n', KINDS[0], KINDS[0], rules=("keep", True))
@settings(deadline=None, max_examples=150)
def test_a_fast_parser_finds_what_the_grammar_does(
    *,
    parser: str,
    table: tuple[str, Schema],
    multi_line: bool,
    empty_as_string: bool,
    block: int,
    wide: int,
    rules: tuple[str, bool] | None,
) -> None:
    if parser == "pyarrow":
        pytest.importorskip("pyarrow")
    text, schema = table
    grammar = Grammar(",", multi_line=multi_line)
    exactly, fast = (Values(rules[0], is_exact=rules[1]) if rules else None for _ in range(2))
    refusal = refused = ""
    try:
        expected = read_exactly(text, schema, grammar, empty_as_string=empty_as_string, values=exactly)
    except BadValue as error:
        refusal = str(error)
    try:
        with patch.multiple(by_arrow, BLOCK_BYTES=block, WIDE=wide), patch.object(assembling, "MANY", wide):
            found = FAST[parser](text.encode(), schema, grammar, empty_as_string=empty_as_string, values=fast)
    except NotPlain:
        return
    except BadValue as error:
        found, refused = None, str(error)
    assert refused == refusal
    if found is None:
        return
    assert shown(found) == shown(expected)
    if exactly is not None and fast is not None and not any("example" in kind for kind in schema.kinds):
        assert fast.found == exactly.found


@pytest.mark.parametrize("text, multi_line", [
    ("5,x,2024-01-02,1\n6,,2024-01-03,0\n", False),
    ('5,"x, y",2024-01-02,1\r\n\r\n6,"",2024-01-03,0', False),
    ('5,"x\ny",2024-01-02,1\nabc,5" pipe,x,2\n', True),
])  # fmt: skip
def test_common_texts_are_left_to_the_fastest_parser(text: str, multi_line: bool) -> None:
    pytest.importorskip("pyarrow")
    kinds: list[Kind] = [{"kind": "int"}, {"kind": "string"}, {"kind": "datetime", "formats": [DATES[0]]}, KINDS[3]]
    schema, grammar = Schema(list("abcd"), kinds), Grammar(",", multi_line=multi_line)
    frame = by_arrow.read_delimited(text.encode(), schema, grammar, empty_as_string=False)
    assert len(frame) == 2
    frame.loc[0, "a"] = 7  # it is the user's own
    assert frame["a"].tolist()[0] == 7


def test_floats_are_the_nearest_ones_with_releases_of_pandas_that_read_them_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    read_csv = pd.read_csv

    def spied(*args: Any, float_precision: str | None = None, **named: Any) -> Any:
        asked.append(float_precision)
        return read_csv(*args, **named)

    monkeypatch.setattr(pd, "read_csv", spied)
    for release in ("1.5.3", "3.0.0", "3.1.1", "10.0.0"):
        monkeypatch.setattr(pd, "__version__", release)
        read = FAST["pandas"](
            b"0.5\n", Schema(["a"], [{"kind": "float"}]), Grammar(",", multi_line=False), empty_as_string=False
        )
        assert read["a"].tolist() == [0.5]
    assert asked == ["round_trip", "round_trip", None, None]
