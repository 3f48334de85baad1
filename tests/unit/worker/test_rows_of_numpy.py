"""Values of NumPy and pandas in rows, at any depth: each is written, or its text, and none ends a worker."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from parallelrun_worker.rows import BadReturn, renderer

FORMATS = ("text", "jsonl", "parquet")
DAY = np.datetime64("2024-01-02")
SCALARS: dict[str, Any] = {
    **{f"time {unit}": np.datetime64(7, unit) for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "as")},
    **{f"duration {unit}": np.timedelta64(7, unit) for unit in ("Y", "M", "W", "D", "h", "m", "s", "us", "ns", "as")},
    **{name: getattr(np, name)(1) for name in ("int8", "uint64", "float16", "longdouble", "clongdouble", "bool_")},
    "duration": np.timedelta64(7), "NaT": np.datetime64("NaT"), "NaT ns": np.timedelta64("NaT", "ns"),
    "far": np.datetime64("12024-01-02"), "early": np.datetime64("-0044-03-15"), "void": np.void(b"ab"),
    "bytes_": np.bytes_(b"x"), "str_": np.str_("x"), "nan": np.longdouble("nan"),
    "record": np.array([(1, "12024-01-02")], dtype=[("x", "i4"), ("t", "M8[D]")])[0],
    "array": np.array([1]), "days": np.array(["2024-01-02", "12024-01-02"], dtype="M8[D]"),
    "objects": np.array([DAY, np.int64(3)], dtype=object), "Timestamp": pd.Timestamp("2024-01-02", tz="UTC"),
    "Timedelta": pd.Timedelta("1ns"), "Period": pd.Period("2024-01"), "NA": pd.NA, "None": None, "int": 5, "text": "x",
    "dict": {np.datetime64("2024"): np.int64(1)}, "list": [1], "infinite": float("inf"),
}  # fmt: skip

OTHERS = (
    "time D", "time ns", "duration s", "uint64", "longdouble", "NaT", "objects", "record", "days", "None", "text",
    "dict", "list",
)  # fmt: skip


@dataclass
class Pair:
    first: Any
    second: Any


SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda a, b: [a, b],
    "lists": lambda a, b: [[a, b], (b, a)],
    "columns": lambda a, b: [[a], [b]],
    "dicts": lambda a, b: [{"v": a, "w": b}, {"v": b}],
    "deep": lambda a, b: [{"v": [a, {"w": (b, a)}]}, {"v": [{"w": [b]}]}],
    "lists in dicts": lambda a, b: [{"v": [a, b]}, {"v": [b]}],
    "fields": lambda a, b: [{"v": {"w": a}}, {"v": {"w": b}}],
    "dataclasses": lambda a, b: [Pair(a, [b]), Pair({"w": a}, {1: b})],
    "frame": lambda a, b: pd.DataFrame({"v": pd.Series([a, b], dtype=object)}),
    "frame of lists": lambda a, b: pd.DataFrame({"v": pd.Series([[a, b], {"w": a}], dtype=object)}),
}


def rendered(returned: Any, row_format: str) -> str:
    """The rows as readers of the output have them."""
    data = renderer({"format": row_format, "header": True, "separator": " ", "safe": False}).render(returned).data
    if row_format == "parquet":
        return str(pa.ipc.open_stream(data).read_all())
    text = data.decode()
    for line in text.splitlines() if row_format == "jsonl" else ():
        json.loads(line, parse_constant=pytest.fail)
    return text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", SCALARS)
def test_rows_of_numpy_values_beside_any_others_end_no_worker(first: str) -> None:
    """In a process of its own: some releases of Arrow end it where times of NumPy stand beside its numbers."""
    child = os.fork()
    if not child:
        try:
            for second, shape, row_format in product(OTHERS, SHAPES.values(), FORMATS):
                with suppress(BadReturn):  # refused by name
                    rendered(shape(SCALARS[first], SCALARS[second]), row_format)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "value, text",
    [
        (np.timedelta64(7, "Y"), "7 years"),
        (np.timedelta64(7, "M"), "7 months"),
        (np.datetime64("12024-01-02"), "12024-01-02"),
        (np.datetime64("99999-01-02T00:00:01"), "99999-01-02T00:00:01"),
        (np.array(["12024-01-02", "2024-01-02"], dtype="M8[D]"), ["12024-01-02", "2024-01-02"]),
        (np.array([[1, 2]], dtype="m8[M]"), [["1 months", "2 months"]]),
        (np.datetime64("2024-01-02T00:00:00.123456789"), "2024-01-02T00:00:00.123456789"),
        (np.datetime64("NaT"), None),
        (np.timedelta64("NaT", "Y"), None),
        (np.longdouble(1.5), 1.5),
        (np.longdouble(1) / 3, str(np.longdouble(1) / 3)),
        (np.longdouble("nan"), None),
        (Pair(float("nan"), {np.int64(1): DAY}), {"first": None, "second": {"1": "2024-01-02"}}),
    ],
)
@pytest.mark.parametrize("wrap", [lambda each: each, lambda each: [each], lambda each: {"v": (each,)}])
def test_rows_of_json_have_each_value_of_numpy_and_no_number_in_place_of_a_time(
    value: Any, text: Any, wrap: Callable[[Any], Any]
) -> None:
    assert json.loads(rendered([{"row": wrap(value)}], "jsonl")) == {"row": json.loads(json.dumps(wrap(text)))}


@pytest.mark.parametrize(
    "values, expected",
    [
        ([DAY, None], [DAY.item(), None]),
        ([DAY, np.datetime64("NaT")], [DAY.item(), None]),
        ([np.datetime64("NaT"), "x"], [None, "x"]),
        ([DAY, np.int64(3)], ["2024-01-02", "3"]),
        ([[DAY, np.int64(3)]], [str([DAY, np.int64(3)])]),
        ([{"v": DAY}, {"v": np.int64(3)}], [str({"v": DAY}), str({"v": np.int64(3)})]),
        ([np.longdouble("nan"), None], [None, None]),
        ([5, np.longdouble(1.5)], ["5", "1.5"]),
        ([np.uint64(5), np.void(b"ab")], ["5", str(np.void(b"ab"))]),
    ],
)
def test_rows_of_parquet_have_each_value_of_numpy_or_its_text(values: list[Any], expected: list[Any]) -> None:
    data = renderer({"format": "parquet"}).render([{"column": value} for value in values]).data
    assert pa.ipc.open_stream(data).read_all().to_pydict() == {"column": expected}
