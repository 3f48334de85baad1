"""Lines that Arrow makes of a DataFrame's columns are those that pandas, or Python's encoder of JSON, makes of rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parallelrun_worker.rows import BadReturn, json_columns, renderer
from parallelrun_worker.rows.text_columns import lines_of
from parallelrun_worker.tables.data_warnings import DataWarnings

pytest.importorskip("pyarrow.compute")

ROWS = 400
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    1e-4,
    9.9e-5,
    1e15,
    1e16,
    123456789012345.6,
    5e-324,
    1.7e308,
    float("inf"),
    -1e-300,
    0.1,
]
TEXTS = ["", "a", "a b", 'say "x"', '"', "é,;|\t", "line\nbreak", "1", "True", "None", "nan", "x" * 99]
MOMENTS = ["2024-01-01", "2024-02-29 12:30:00", "1900-01-01", "2024-01-01 00:00:00.000000001", "2024-01-01 00:00:00.5"]


def drawn(draw: random.Random, values: list[Any]) -> list[Any]:
    return draw.choices(values, k=ROWS)


def some_missing(draw: random.Random, values: Any) -> Any:
    series = pd.Series(values)
    return series.mask(pd.Series(np.array([draw.random() < 0.1 for _ in range(ROWS)])))


PLAIN: dict[str, Callable[[random.Random], Any]] = {
    "int64": lambda draw: [draw.randint(-(2**63), 2**63 - 1) for _ in range(ROWS)],
    "int8": lambda draw: np.array(drawn(draw, [-128, 0, 127]), np.int8),
    "uint64": lambda draw: np.array(drawn(draw, [0, 2**64 - 1]), np.uint64),
    "bool": lambda draw: drawn(draw, [True, False]),
    "Int64": lambda draw: some_missing(draw, pd.array(drawn(draw, [1, -(2**60)]), "Int64")),
    "boolean": lambda draw: some_missing(draw, pd.array(drawn(draw, [True, False]), "boolean")),
    "float64": lambda draw: some_missing(draw, [draw.uniform(-1e6, 1e6) for _ in range(ROWS)]),
    "float32": lambda draw: np.array([draw.uniform(-9, 9) for _ in range(ROWS)], np.float32),
    "whole": lambda draw: np.array([float(draw.randint(1, 10 ** draw.randint(1, 17))) for _ in range(ROWS)]),
    "any float": lambda draw: [draw.choice(FLOATS) if draw.random() < 0.2 else draw.random() for _ in range(ROWS)],
    "odd floats": lambda draw: drawn(draw, FLOATS),
    "odd float32": lambda draw: np.array(drawn(draw, [x for x in FLOATS if abs(x) < 1e30]), np.float32),
    "str": lambda draw: some_missing(draw, pd.Series(drawn(draw, TEXTS))),
    "object": lambda draw: pd.Series(drawn(draw, [*TEXTS, None, float("nan"), pd.NA]), dtype=object),
    "category": lambda draw: pd.Categorical(drawn(draw, TEXTS)),
    "none": lambda draw: pd.Series([None] * ROWS, dtype=object),
    "day": lambda draw: pd.to_datetime(some_missing(draw, drawn(draw, ["2024-01-01", "1900-02-03"]))),
}
ODD: dict[str, Callable[[random.Random], Any]] = {
    "moments": lambda draw: pd.to_datetime(pd.Series(drawn(draw, MOMENTS)), format="ISO8601"),
    "seconds": lambda draw: pd.to_datetime(pd.Series(drawn(draw, MOMENTS[:3])), format="ISO8601"),
    "zoned": lambda draw: pd.to_datetime(pd.Series(drawn(draw, MOMENTS[:3])), format="ISO8601").dt.tz_localize("UTC"),
    "mixed": lambda draw: pd.Series(drawn(draw, [1, "a", 2.5, None, b"x", True, (1, 2)]), dtype=object),
    "complex": lambda draw: np.array(drawn(draw, [1j, 2.0])),
    "period": lambda draw: pd.PeriodIndex(drawn(draw, ["2024-01", "2024-02"]), freq="M"),
    "duration": lambda draw: pd.to_timedelta(pd.Series(drawn(draw, [1, 2, 86400])), unit="s"),
    "numbers by name": lambda draw: pd.Categorical(drawn(draw, [1.0, 2.5])),
    "half a character": lambda draw: pd.Series(drawn(draw, ["a", "\udc80"]), dtype=object),
    "float16": lambda draw: np.array(drawn(draw, [0.1, 2.0]), np.float16),
    "arrow": lambda draw: pd.Series(drawn(draw, [1.0, 2.5, None]), dtype="float64[pyarrow]"),
}  # fmt: skip


def by_pandas(frame: pd.DataFrame, separator: str) -> bytes:
    return str(frame.to_csv(sep=separator, header=False, index=False)).encode("utf-8", "surrogateescape")


def test_lines_of_columns_are_those_that_pandas_writes() -> None:
    for separator in (" ", ",", "\t", "|", "^", '"', "é"):
        _compare(separator)


def _compare(separator: str) -> None:
    draw = random.Random(separator)
    for name, make in PLAIN.items():
        frame = pd.DataFrame({"a": make(draw), "b": range(ROWS)})
        if separator != '"':  # which pandas writes as it can
            assert lines_of(frame, separator) == by_pandas(frame, separator), name
    kinds = [*PLAIN.values(), *ODD.values()]
    for _ in range(60):
        frame = pd.DataFrame({str(at): make(draw) for at, make in enumerate(draw.sample(kinds, 4))})
        frame.index = pd.Index(draw.sample(range(10**6), ROWS))
        lines = lines_of(frame, separator)
        assert lines is None or lines == by_pandas(frame, separator), frame.dtypes


def test_numbers_get_the_quotes_that_a_separator_of_theirs_asks_for() -> None:
    moments = pd.to_datetime(["2024-01-01 10:00"] * ROWS)
    frame = pd.DataFrame({"n": np.arange(ROWS) - 0.5, "b": [True] * ROWS, "d": moments})
    for separator in "0-.e:T":
        lines = lines_of(frame, separator)
        assert lines is None or lines == by_pandas(frame, separator), separator


def test_a_field_with_a_carriage_return_is_in_quotes_and_times_of_arrow_are_left() -> None:
    frame = pd.DataFrame({"a": ["x\ry"] * ROWS, "b": range(ROWS)})
    assert (lines_of(frame, ",") or b"").startswith(b'"x\ry",0\n"x\ry",1\n')
    times = pd.Series(["2024-01-01 10:00"] * ROWS).astype("timestamp[ns][pyarrow]")
    assert lines_of(frame.assign(t=times), ",") is None  # releases of pandas write these in several forms


@pytest.mark.parametrize("is_plain", [True, False])
def test_lines_of_json_are_those_of_rows_one_by_one(monkeypatch: pytest.MonkeyPatch, is_plain: bool) -> None:
    draw = random.Random(is_plain)
    escapes = {"escapes": lambda draw: drawn(draw, ["", "\\", '"', "\t\x00\x1f", "\x7f\u2028é", "{}", None])}
    kinds = {**PLAIN, **escapes, "seconds": ODD["seconds"], **({} if is_plain else ODD)}
    by_columns, by_rows = (renderer({"format": "jsonl"}, warnings=DataWarnings()) for _ in range(2))
    frames = [pd.DataFrame({name: make(draw)}) for name, make in kinds.items()]
    for _ in range(40):
        names = draw.sample([*kinds], 4)
        frames.append(
            pd.DataFrame({f'{name} "é\\': kinds[name](draw) for name in names}, draw.sample(range(999), ROWS))
        )
    for frame in frames:
        with monkeypatch.context() as patched:
            patched.setattr(json_columns, "is_worth", lambda _: False)
            try:
                expected = by_rows.render(frame)
            except (TypeError, BadReturn):  # such as complex numbers
                continue
        assert by_columns.render(frame) == expected, frame.dtypes
    for frame in frames[: len(PLAIN)]:
        has_infinity = any(dtype.kind == "f" and np.isinf(frame.to_numpy()).any() for dtype in frame.dtypes)
        assert (json_columns.lines_of(frame, [*map(str, frame)]) is None) == has_infinity, frame.dtypes


def test_columns_that_arrow_would_write_otherwise_are_left_to_pandas() -> None:
    for name, make in ODD.items():
        frame = pd.DataFrame({"a": make(random.Random(0)), "b": make(random.Random(1)), "c": range(ROWS)})
        lines = lines_of(frame, ",")
        assert lines is None or lines == by_pandas(frame, ","), name
