"""Columns of text to columns of a kind. What doesn't fit becomes null (reference §4.3).

Nulls are None in columns of objects and NaN in columns of numbers, the same with pandas 2 and 3.
"""

import re
from typing import Any

from parallelrun_worker.tables.inference import FALSE_WORDS, TRUE_WORDS, Kind, has_far_zone

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_FIRST_FLOAT_BEYOND_INT64 = float(1 << 63)
_EXACT_IN_FLOAT = 1 << 53
_PRESENT = ("now", "today")
_LEAP_SECOND = re.compile(":6[01](?![0-9:])")


def as_objects(column: Any) -> Any:
    """Return a column with Python's own values, and None for nulls."""
    plain = column.astype(object)
    missing = plain.isna()
    return plain.where(~missing, None) if missing.any() else plain


def convert(column: Any, kind: Kind) -> Any:
    """A column of str and None as a column of this kind."""
    match kind["kind"]:
        case "int":
            return _whole_numbers(column)
        case "float":
            return _numbers(column).astype("float64")
        case "bool":
            return as_bools(column, kind)
        case "datetime":
            return as_dates(column, kind)
        case _:
            return as_objects(column)


def _numbers(column: Any) -> Any:
    import pandas as pd

    words = column.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)
    try:
        numbers = pd.to_numeric(words)
    except (ValueError, TypeError, OverflowError):
        numbers = pd.to_numeric(words, errors="coerce")
    if numbers.dtype.kind in "iufb":
        return numbers
    # pandas finds no type for numbers below 0, or for nulls, beside one beyond int64
    return pd.Series([_number(word) for word in words], index=column.index, dtype="float64")


def _number(word: Any) -> float:
    import pandas as pd

    return float("nan") if word is None else float(pd.to_numeric(word, errors="coerce"))


def _whole_numbers(column: Any) -> Any:
    """Each whole number as it is written, even if another one of its column has a point or is too large."""
    numbers = _numbers(column)
    whole = as_ints(numbers)
    if numbers.dtype.kind in "iu" or whole.dtype.kind != "i":
        return whole
    large = numbers.abs() >= _EXACT_IN_FLOAT
    if large.any():
        whole[large] = column[large].map(_whole_number).to_numpy(dtype="int64")
    return whole


def _whole_number(value: Any) -> int:
    try:
        number = int(value)
    except ValueError:
        number = int(float(value))
    return min(max(number, _INT64_MIN), _INT64_MAX)


def as_ints(column: Any) -> Any:
    """Numbers as whole numbers: fractions are cut off, and numbers that are too large become the largest that fits."""
    if column.dtype.kind == "i":
        return column.astype("int64")
    if column.dtype.kind == "u":
        return column.clip(upper=_INT64_MAX).astype("int64")
    import numpy as np

    cut = np.trunc(column.astype("float64"))
    missing = cut.isna() | cut.isin([float("inf"), float("-inf")])
    if missing.any():
        return cut.where(~missing).clip(_INT64_MIN, _INT64_MAX)
    if (cut.abs() >= _FIRST_FLOAT_BEYOND_INT64).any():
        return cut.map(lambda value: min(max(int(value), _INT64_MIN), _INT64_MAX)).astype("int64")
    return cut.astype("int64")


def words_of(kind: Kind) -> dict[str, bool]:
    """The words of a column of truth values."""
    true, false = kind.get("true_values") or TRUE_WORDS, kind.get("false_values") or FALSE_WORDS
    return dict.fromkeys(true, True) | dict.fromkeys(false, False)


def as_bools(column: Any, kind: Kind) -> Any:
    """Words as truth values; of dtype bool if each word has one."""
    words = words_of(kind)
    otherwise = {"true": True, "false": False}.get(kind.get("mismatch_as", "error"))

    def truth(value: Any) -> bool | None:
        if isinstance(value, bool):
            return value
        return words.get(value.strip(), otherwise) if isinstance(value, str) else None

    truths = column.astype(object).map(truth)
    return truths.astype("bool") if not truths.isna().any() else truths.astype(object).where(~truths.isna(), None)


def as_dates(column: Any, kind: Kind) -> Any:
    """Texts as times without a zone, in UTC; of several allowed forms, the first that fits counts."""
    formats = kind.get("formats") or []
    if not formats:  # day and month can't be told apart
        import pandas as pd

        return pd.Series([None] * len(column), index=column.index, dtype=object)
    dates = _dates(_without_others(column, kind), formats)
    missing = dates.isna()
    unfit = missing & column.notna() if missing.any() else missing
    if unfit.any():
        texts = column[unfit].map(lambda value: value.strip() if isinstance(value, str) else None)
        dates[unfit] = _dates(_without_others(texts, kind), formats)
    return dates


def _without_others(texts: Any, kind: Kind) -> Any:
    """Texts with null for those of which pandas makes another time than what stands there: words for the present, the
    sixtieth second of a minute, and, in a column of times in UTC, times of other zones.
    """
    others = texts.isin(_PRESENT)
    if not kind.get("declared") and any("%S" in form for form in kind["formats"]):
        others |= texts.map(lambda text: type(text) is str and _LEAP_SECOND.search(text) is not None)
    if kind.get("is_utc"):
        others |= texts.map(lambda text: type(text) is str and has_far_zone(text))
    return texts.where(~others, None) if others.any() else texts


def _dates(words: Any, formats: list[str]) -> Any:
    import pandas as pd

    parsed = None
    for directives in formats:
        dates = pd.to_datetime(words, format=directives, errors="coerce", utc="%z" in directives)
        dates = _in_nanoseconds(dates.dt.tz_convert(None) if dates.dt.tz is not None else dates)
        parsed = dates if parsed is None else parsed.fillna(dates)
        if not parsed.isna().any():
            break
    return parsed


def _in_nanoseconds(dates: Any) -> Any:
    """Return dates in nanoseconds; null before 1677 and after 2262, which nanoseconds can't represent."""
    import pandas as pd

    if dates.dtype != "datetime64[ns]":
        dates = dates.where((dates >= pd.Timestamp.min) & (dates <= pd.Timestamp.max))
    return dates.astype("datetime64[ns]")
