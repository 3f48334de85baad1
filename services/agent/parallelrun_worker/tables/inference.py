"""What type a column has, from its first values (reference §4.3).

A kind is JSON: `{"kind": "int"}`, or a date with the forms that its values may have. What doesn't fit later becomes
null, so what is decided here holds for the whole table.
"""

import re
from typing import Any

Kind = dict[str, Any]

STRING: Kind = {"kind": "string"}
TRUE_WORDS = ("1", "True", "true", "TRUE", "t", "T", "Yes", "YES", "Y")
FALSE_WORDS = ("0", "False", "false", "FALSE", "f", "F", "No", "NO", "N")
_WORDS = frozenset(TRUE_WORDS + FALSE_WORDS)
_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|Inf|Infinity|nan|NaN)", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)

_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
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
_DAY_OR_MONTH = re.compile(r"([0-9]{1,2})([/-])([0-9]{1,2})\2[0-9]{4}(?: (.+))?")
_CLOCK = [
    (re.compile(r"[0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M"), "%I:%M:%S %p"),
    (re.compile(r"[0-9]{1,2}:[0-9]{2} [AP]M"), "%I:%M %p"),
    (re.compile(r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}"), "%H:%M:%S"),
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
    if all(_INT.fullmatch(word) and int(word) in _INT64 for word in words):
        return {"kind": "int"}
    if all(_FLOAT.fullmatch(word) for word in words):
        return {"kind": "float"}
    return _date_kind(words) or STRING


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
