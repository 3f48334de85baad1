"""Inference of a column's type from its first values: as Azure ML infers it (reference §4.3), or without a loss.

A kind is JSON: `{"kind": "int"}`, or a date with the forms that its values may have. What doesn't fit later becomes
null, or is kept, so what is decided here holds for the whole table. `odd`: the values are not what stands in the
file, and why. `declared`: the type was not inferred, but asked for. `is_utc`: times of other zones don't fit.
"""

import re
from typing import Any

Kind = dict[str, Any]

STRING: Kind = {"kind": "string"}
TRUE_WORDS = ("1", "True", "true", "TRUE", "t", "T", "Yes", "YES", "Y")
FALSE_WORDS = ("0", "False", "false", "FALSE", "f", "F", "No", "NO", "N")
TRUE_SPELLINGS = ("True", "true", "TRUE")
FALSE_SPELLINGS = ("False", "false", "FALSE")
_WORDS = frozenset(TRUE_WORDS + FALSE_WORDS)
_SPELLINGS = frozenset(TRUE_SPELLINGS + FALSE_SPELLINGS)
WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|Inf|Infinity|nan|NaN)", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]", re.ASCII)
_INFINITE = ("inf", "Inf", "Infinity", "nan", "NaN")
_MOST_DIGITS = 4300
"""Python makes no number of more digits than that unless it is told to."""
_SURE_DIGITS = 15
"""So many digits are always exact in a float."""
_YEAR = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")
_YEARS = range(1678, 2262)
"""Which 64-bit nanoseconds have from their first to their last day."""

_TIME = r"[0-9]{2}:[0-9]{2}:[0-5][0-9]"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_ISO = [
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"), "%Y-%m-%d"),
    (re.compile(r"[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}"), "%Y/%m/%d"),
    *(
        (re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{mark}{_TIME}{tail}"), f"%Y-%m-%d{mark}%H:%M:%S{directives}")
        for mark in "T "
        for tail, directives in (
            ("", ""), (r"\.[0-9]{1,9}", ".%f"), (_ZONE, "%z"), (rf"\.[0-9]{{1,9}}{_ZONE}", ".%f%z"),
        )
    ),
]  # fmt: skip
_FAR_ZONE = re.compile(r"[T ][0-9:.]+[+-](?!00:?00$)[0-9]{2}:?[0-9]{2}")
_DAY_OR_MONTH = re.compile(r"([0-9]{1,2})([/-])([0-9]{1,2})\2[0-9]{4}(?: (.+))?")
_CLOCK = [
    (re.compile(r"[0-9]{1,2}:[0-9]{2}:[0-5][0-9] [AP]M"), "%I:%M:%S %p"),
    (re.compile(r"[0-9]{1,2}:[0-9]{2} [AP]M"), "%I:%M %p"),
    (re.compile(r"[0-9]{1,2}:[0-9]{2}:[0-5][0-9]"), "%H:%M:%S"),
    (re.compile(r"[0-9]{1,2}:[0-9]{2}"), "%H:%M"),
]
_MONTHS, _DAYS = 12, 31


def infer_kind(values: list[str | None]) -> Kind:
    """The kind of a column whose first values are these."""
    texts = [value for value in values if value is not None]
    if not texts or "" in texts:
        return STRING
    words = [value.strip() for value in texts]
    if all(word in _WORDS for word in words):
        return {"kind": "bool"}
    if all(WHOLE.fullmatch(word) and len(word) <= _MOST_DIGITS and int(word) in _INT64 for word in words):
        return {"kind": "int"}
    if all(FLOAT.fullmatch(word) for word in words):
        return {"kind": "float"}
    return _date_kind(words) or STRING


def infer_as_azure(values: list[str | None]) -> Kind:
    """Return the kind as `infer_kind` does, but for whole numbers, which may have any size; and why
    its values are odd.
    """
    kind = infer_kind(values)
    words = [value.strip() for value in values if value]
    match kind["kind"]:
        case "float" if all(WHOLE.fullmatch(word) for word in words):
            return {"kind": "int"}
        case "float" if any(oddity(word) for word in words):
            return {**kind, "odd": next(filter(None, map(oddity, words)))}
        case "bool" if not _SPELLINGS.issuperset(words):
            return {**kind, "odd": "truth", "example": next(word for word in words if word not in _SPELLINGS)}
        case "datetime" if not kind["formats"]:
            return {**kind, "odd": "ambiguous_day"}
    return kind


def infer_exactly(values: list[str | None]) -> Kind:
    """The kind of a column whose first values are these, if each of them can be written back as it is; else text.

    That is so for words, whole numbers without leading zeros, numbers with a point, and dates of a form that tells day
    from month, in UTC if they have a zone. Of blanks around a value and digits after a point, nothing is said.
    """
    words = [value.strip() for value in values if value is not None]
    if not words or "" in words:
        return STRING
    if all(word in _SPELLINGS for word in words):
        return {"kind": "bool", "true_values": list(TRUE_SPELLINGS), "false_values": list(FALSE_SPELLINGS)}
    if all(WHOLE.fullmatch(word) for word in words):
        return STRING if any(map(oddity, words)) else {"kind": "int"}
    if all(FLOAT.fullmatch(word) for word in words):
        return {"kind": "float"} if all(map(_is_plain, words)) else STRING
    kind = _date_kind(words)
    if kind is None or not kind["formats"] or any(map(has_far_zone, words)) or not _are_in_range(words):
        return STRING
    return {**kind, "is_utc": True} if any("%z" in form for form in kind["formats"]) else kind


def has_far_zone(word: str) -> bool:
    """Return whether a time has a zone that isn't UTC, which a column of times in UTC would lose."""
    return _FAR_ZONE.search(word) is not None


def oddity(word: str) -> str:
    """Why a number, written back, would not be what stands there; empty: it would."""
    if word.startswith("+"):
        return "sign"
    if _LEADING_ZERO.match(word) or word == "-0":
        return "leading_zero"
    return "exponent" if "e" in word.lower() and "." not in word else ""


def _is_plain(word: str) -> bool:
    if oddity(word):
        return False
    if word.lstrip("-") in _INFINITE:
        return True
    return abs(float(word)) != float("inf") and ("e" in word.lower() or _is_whole_part_exact(word))


def _is_whole_part_exact(word: str) -> bool:
    whole = word.partition(".")[0]
    return len(whole) <= _SURE_DIGITS or int(float(word)) == int(whole)


def _are_in_range(words: list[str]) -> bool:
    """Return whether all years are those of 64-bit nanoseconds."""
    years = [int(year) for word in words for year in _YEAR.findall(word)[:1]]
    return all(year in _YEARS for year in years)


def _date_kind(words: list[str]) -> Kind | None:
    formats = dict.fromkeys(_iso_format(word) for word in words)
    if None not in formats:
        return {"kind": "datetime", "formats": list(formats)}
    return _day_month_kind(words)


def _iso_format(word: str) -> str | None:
    for pattern, directives in _ISO:
        if pattern.fullmatch(word):
            month, day = (int(part) for part in re.split(r"[-/T ]", word)[1:3])
            return directives if 1 <= month <= _MONTHS and 1 <= day <= _DAYS else None
    return None


def _day_month_kind(words: list[str]) -> Kind | None:
    """Dates as people write them. If no value shows which number is the day, all of the column is null, as in the
    reference."""
    forms: dict[tuple[str, str], None] = {}
    first, second = 0, 0
    for word in words:
        match = _DAY_OR_MONTH.fullmatch(word)
        clock = _clock_format(match.group(4)) if match else None
        if match is None or clock is None:
            return None
        first, second = max(first, int(match.group(1))), max(second, int(match.group(3)))
        forms[match.group(2), clock] = None
    if first > _DAYS or second > _DAYS or (first > _MONTHS and second > _MONTHS):
        return None
    if first <= _MONTHS and second <= _MONTHS:
        return {"kind": "datetime", "formats": []}
    order = "%d{0}%m{0}%Y" if first > _MONTHS else "%m{0}%d{0}%Y"
    return {"kind": "datetime", "formats": [order.format(mark) + clock for mark, clock in forms]}


def _clock_format(text: str | None) -> str | None:
    if text is None:
        return ""
    return next((f" {directives}" for pattern, directives in _CLOCK if pattern.fullmatch(text)), None)
