"""A look at whether an Arrow array holds what stood in Python's values.

Arrow takes the type of the first of several kinds, and makes the others fit: after a date, 5 becomes 1970-01-06, a
time of day is cut off, and a time without a zone gets the zone of the one before. It also cuts nanoseconds off.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

_NULLS = ("NoneType", "NaTType", "NAType")
_NUMPY_KINDS = {
    "datetime64": "numpy_time", "timedelta64": "numpy_duration", "longdouble": "long", "clongdouble": "complex",
    "complex64": "complex", "complex128": "complex", "void": "record",
}  # fmt: skip
"""Those of NumPy's types that aren't numbers for Arrow, or only with fewer digits."""


def is_faithful(values: Sequence[object], type_: Any) -> bool:
    """Return whether each value is of the kind that an Arrow type holds as it is; those within lists and dicts, too."""
    import pyarrow as pa

    is_ = pa.types
    if is_.is_struct(type_):
        rows = [value for value in values if isinstance(value, dict)]
        return all(is_faithful([row.get(field.name) for row in rows], field.type) for field in type_)
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return is_faithful(list(chain.from_iterable(map(_elements, values))), type_.value_type)
    types = set(map(type, values))
    kinds = {kind: each for each in types if each.__name__ not in _NULLS for kind in [_kind(each)]}
    expected = _expected(is_, type_)
    if expected is None:
        return True
    odd = kinds.keys() - expected
    if odd and not (odd <= {"number", "decimal"} and _are_all_nan(values, odd)):
        return False
    if is_.is_temporal(type_) and not is_.is_date(type_):
        return _have_one_clock(values, type_) and not (type_.unit == "us" and _have_nanoseconds(types, values))
    return True


def may_mix_numpy_times(values: Iterable[Any]) -> bool:
    """Return whether NumPy's times stand beside other kinds of values, which some releases of Arrow crash on: in a
    column, in its lists, or in a field of its dicts.
    """
    types = set(map(type, values))
    kinds = {_kind(each) for each in types if each.__name__ not in _NULLS}
    if len(kinds) > 1 and not kinds.isdisjoint(("numpy_time", "numpy_duration")):
        return True
    fields: dict[object, list[object]] = {}
    if any(issubclass(each, dict) for each in types):
        for value in values:
            for name, each in value.items() if isinstance(value, dict) else ():
                fields.setdefault(name, []).append(each)
    if any(issubclass(each, (list, tuple, set, frozenset)) or hasattr(each, "ndim") for each in types):
        fields[_elements] = list(chain.from_iterable(map(_elements, values)))
    return any(each and may_mix_numpy_times(each) for each in fields.values())


def _have_nanoseconds(types: set[type], values: Iterable[object]) -> bool:
    """Return whether a time or duration is finer than microseconds; of `types`, only those of pandas can be."""
    if not any(hasattr(each, "nanoseconds") or hasattr(each, "nanosecond") for each in types):
        return False
    fine = (getattr(value, "nanosecond", getattr(value, "nanoseconds", 0)) for value in values)
    return any(each > 0 for each in fine)  # NaN of NaT is not


def _kind(type_: type) -> str:
    if issubclass(type_, bool) or type_.__name__ in ("bool_", "bool"):
        return "truth"
    for kind, classes in (
        ("number", (int, float)), ("decimal", (Decimal,)), ("text", (str,)), ("bytes", (bytes, bytearray, memoryview)),
        ("time", (datetime.datetime,)), ("date", (datetime.date,)), ("clock", (datetime.time,)),
        ("duration", (datetime.timedelta,)),
    ):  # fmt: skip
        if issubclass(type_, classes):
            return kind
    if type_.__module__ == "numpy":
        return _NUMPY_KINDS.get(type_.__name__, "number")
    return type_.__name__


def _expected(is_: Any, type_: Any) -> set[str] | None:
    """The kinds of values that an Arrow type holds as they are; None: any that it takes."""
    for holds, kinds in (
        (is_.is_boolean, {"truth"}), (is_.is_integer, {"number"}), (is_.is_floating, {"number"}),
        (is_.is_decimal, {"decimal", "number"}), (is_.is_string, {"text"}), (is_.is_binary, {"bytes"}),
        (is_.is_date, {"date", "numpy_time"}), (is_.is_timestamp, {"time", "numpy_time"}), (is_.is_time, {"clock"}),
        (is_.is_duration, {"duration", "numpy_duration"}),
    ):  # fmt: skip
        if holds(type_):
            return kinds
    return None


def _elements(value: Any) -> Iterable[object]:
    """The elements of a list, or those of an array that tell of which kind they all are."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    dtype = getattr(value, "dtype", None)
    if dtype is None or not getattr(value, "ndim", 0):
        return ()
    return list(value if dtype.kind == "O" else value[:1])


def _are_all_nan(values: Iterable[Any], kinds: set[str]) -> bool:
    return all(value != value for value in values if value is not None and _kind(type(value)) in kinds)  # noqa: PLR0124 - NaN


def _have_one_clock(values: Iterable[object], type_: Any) -> bool:
    """Return whether times all have a zone or all have none; those without a date, none."""
    import pyarrow as pa

    zoned = {
        value.tzinfo is not None
        for value in values
        if isinstance(value, (datetime.datetime, datetime.time)) and type(value).__name__ not in _NULLS
    }
    return zoned <= {False} if pa.types.is_time(type_) else len(zoned) < 2
