"""Columns of values, each as the text that stands in a file; and whether a cell of a DataFrame is such a value."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pandas as pd

Value = Any
"""Of delimited text: the text, or None for an empty field. Of JSON lines and Parquet: the value."""

BIG: Final = 2**53 + 1
_TRUE: Final = frozenset(["1", "True", "true", "TRUE", "t", "T", "Yes", "YES", "Y"])
_FALSE: Final = frozenset(["0", "False", "false", "FALSE", "f", "F", "No", "NO", "N"])
_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SAMPLED: Final = 200


def _texts(chance: random.Random, count: int) -> list[Value]:
    words = ("plain", "two words", "it's", "naïve", "Zürich", "x;y", "tab\there", "=1+1", "NULL", "-", "a#b")
    return [f"{chance.choice(words)} {number}" for number in range(count)]


def _wide_texts(chance: random.Random, count: int) -> list[Value]:
    return [f"{chance.choice('日本語😀éßπ')}{number}" for number in range(count)]


def _day(chance: random.Random) -> str:
    """Two numbers, each of which may be the month."""
    return f"{chance.randrange(1, 13):02}-{chance.randrange(1, 13):02}"


def _late(first: Callable[[int], str], late: str) -> Callable[[random.Random, int], list[Value]]:
    def column(chance: random.Random, count: int) -> list[Value]:
        values: list[Value] = [first(number) for number in range(count)]
        at = chance.randrange(_SAMPLED + 20, count) if count > _SAMPLED + 30 else count - 1
        values[at] = late
        return values

    return column


ORDINARY: Final[dict[str, Callable[[random.Random, int], list[Value]]]] = {
    "ints": lambda chance, count: [str(chance.randrange(2, 10**6)) for _ in range(count)],
    "floats": lambda chance, count: [f"{chance.randrange(1, 10**6) / 64:.3f}" for _ in range(count)],
    "texts": _texts,
    "words": lambda chance, count: [chance.choice(("red", "green", "blue")) for _ in range(count)],
    "dates": lambda chance, count: [f"2024-{_day(chance)}" for _ in range(count)],
    "times": lambda chance, count: [f"2024-{_day(chance)}T10:{number % 60:02}:07" for number in range(count)],
    "truths": lambda chance, count: [chance.choice(("true", "false")) for _ in range(count)],
    "accents": lambda chance, count: [f"café {n} {chance.choice('äöü')}" for n in range(count)],
    "gaps": lambda chance, count: [chance.choice((None, f"text {number}")) for number in range(count)],
}  # fmt: skip
"""Columns of which nobody is warned."""

ODD: Final[dict[str, Callable[[random.Random, int], list[Value]]]] = {
    "big_beside_null": lambda chance, count: [None if n % 3 == 1 else str(BIG + 2 * n) for n in range(count)],
    "beyond_int64": lambda chance, count: [str(2**63 + n) for n in range(count)],
    "unsigned": lambda chance, count: [str(2**64 - 1 - n) if n % 2 else str(n) for n in range(count)],
    "400_digits": lambda chance, count: [f"{n + 1}{'7' * 400}" for n in range(count)],
    "late_big": _late(str, str(2**64 + 7)),
    "late_text": _late(str, "n/a"),
    "late_float": _late(lambda n: str(n + 10), "2.75"),
    "late_truth": _late(lambda n: "true" if n % 2 else "false", "perhaps"),
    "late_date": _late(lambda n: f"2024-01-{n % 28 + 1:02}", "soon"),
    "zip_codes": lambda chance, count: [f"{chance.randrange(100, 9999):05}" for _ in range(count)],
    "plus_signs": lambda chance, count: [f"+{chance.randrange(1, 99)}" for _ in range(count)],
    "exponents": lambda chance, count: [f"{chance.randrange(1, 9)}e{chance.randrange(1, 9)}" for _ in range(count)],
    "zeros_and_ones": lambda chance, count: [str(chance.randrange(2)) for _ in range(count)],
    "days_or_months": lambda chance, count: [f"{_day(chance).replace('-', '/')}/2024" for _ in range(count)],
    "far_dates": lambda chance, count: ["9999-12-31" if n % 4 else "2024-01-31" for n in range(count)],
    "leap_seconds": lambda chance, count: [f"20{n % 90 + 10}-12-31 23:59:60" for n in range(count)],
    "spaces": lambda chance, count: [f" {n} " for n in range(count)],
}  # fmt: skip
"""Columns whose values somebody may read in another way than they stand in the file."""


def is_null(cell: object) -> bool:
    """Whether a cell is null."""
    return cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell))


def is_same(cell: object, value: Value) -> bool:  # noqa: PLR0911 - one for each type of a cell
    """Whether a cell of a DataFrame is the value that stands in the file: no digit, sign or zero is lost."""
    if value is None or is_null(cell):
        return value is None and is_null(cell)
    if not isinstance(value, str):
        return _is_same_value(cell, value)
    if isinstance(cell, str):
        return cell == value
    if hasattr(cell, "item") and not isinstance(cell, pd.Timestamp):
        cell = cell.item()
    if isinstance(cell, bool):
        return value.strip() in (_TRUE if cell else _FALSE) and value not in ("0", "1")
    if isinstance(cell, int):
        return str(cell) == value.strip()
    if isinstance(cell, float | Decimal):
        return _is_same_number(cell, value.strip())
    if isinstance(cell, pd.Timestamp | datetime | date):
        return bool(re.match(r"\d{4}-", value)) and pd.Timestamp(cell) == _time_of(value)
    return False


def _time_of(text: str) -> object:
    try:
        return pd.Timestamp(text)
    except ValueError:
        return None


def _is_same_number(cell: float | Decimal, text: str) -> bool:
    if _WHOLE.fullmatch(text):
        return len(text) < 400 and Decimal(cell) == Decimal(text) and text[0] not in "+0"
    return "." in text and float(cell) == float(text)


def _is_same_value(cell: Any, value: Value) -> bool:
    if isinstance(value, dict):
        return cell.keys() == value.keys() and all(is_same(cell[key], each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return len(cell) == len(value) and all(map(is_same, cell, value))
    if hasattr(cell, "item"):
        cell = cell.item()
    if isinstance(value, bool) or isinstance(cell, bool):
        return cell is value
    if isinstance(value, int):
        return isinstance(cell, int | float) and Decimal(cell) == value
    return bool(cell == value)
