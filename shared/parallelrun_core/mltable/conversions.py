"""Selections of columns that steps mean, and the types that columns are converted to."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from parallelrun_core.mltable.options import flag, one_of, options_of, texts
from parallelrun_core.problems import At

Kind = Literal["int", "float", "string", "bool", "datetime", "stream_info"]

_PLAIN_TYPES: Final[dict[str, Kind]] = {
    "int": "int", "long": "int", "integer": "int", "float": "float", "double": "float", "string": "string",
    "boolean": "bool", "bool": "bool", "datetime": "datetime", "stream_info": "stream_info",
}  # fmt: skip


class NamePattern(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    """Regular expression, found anywhere in the name."""
    ignore_case: bool = False
    invert: bool = False


Selection = list[str] | NamePattern


def selected(names: list[str], selection: Selection) -> list[str]:
    """Return which of these columns are meant, in their order."""
    if not isinstance(selection, NamePattern):
        return [name for name in names if name in selection]
    pattern = re.compile(selection.pattern, re.IGNORECASE if selection.ignore_case else 0)
    return [name for name in names if bool(pattern.search(name)) != selection.invert]


class ColumnType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The type that the values of a column are converted to."""

    kind: Kind
    formats: list[str] = []
    """The forms that the values of a datetime may have, as for strptime."""
    date_constant: str | None = None
    """The day of datetime values that are times alone."""
    true_values: list[str] = []
    false_values: list[str] = []
    mismatch_as: Literal["error", "true", "false"] = "error"


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """Some columns and their type."""

    columns: Selection
    type: ColumnType


def parse_selection(option: object, at: At) -> Selection:
    """Names, or a pattern for names."""
    if isinstance(option, str):
        return [option]
    if isinstance(option, list) and option and all(isinstance(name, str) for name in option):
        return option
    if not isinstance(option, dict) or not isinstance(option.get("pattern"), str):
        at.wrong(f"must be a column's name, a list of names or {{pattern: …}}, not {option!r}")
        return []
    at.known_keys(option, ("pattern", "ignore_case", "invert"))
    try:
        re.compile(option["pattern"])
    except re.error as error:
        at.below("pattern").wrong(f"not a regular expression: {error}")
    return NamePattern(
        pattern=option["pattern"], ignore_case=flag(option, "ignore_case", at), invert=flag(option, "invert", at)
    )


def parse_conversions(option: object, at: At) -> list[Conversion]:
    """A list of `{columns, column_type}`, or one."""
    entries = [option] if isinstance(option, dict) else option
    if not isinstance(entries, list):
        at.wrong("must be a list of {columns, column_type}")
        return []
    conversions = []
    for number, entry in enumerate(entries):
        where = at.below(number)
        if not isinstance(entry, dict) or not {"columns", "column_type"} <= entry.keys():
            where.wrong("must be {columns, column_type}")
            continue
        where.known_keys(entry, ("columns", "column_type"))
        columns = parse_selection(entry["columns"], where.below("columns"))
        conversions.append(
            Conversion(columns=columns, type=_column_type(entry["column_type"], where.below("column_type")))
        )
    return conversions


def _column_type(option: object, at: At) -> ColumnType:
    if isinstance(option, str) and option.lower() in _PLAIN_TYPES:
        return ColumnType(kind=_PLAIN_TYPES[option.lower()])
    if isinstance(option, dict) and len(option) == 1:
        name, options = next(iter(option.items()))
        where = at.below(name)
        if name in ("datetime", "to_datetime"):
            return _datetime(options_of(options, where, ("formats", "date_constant")), where)
        if name in ("boolean", "to_bool"):
            return _boolean(options_of(options, where, ("true_values", "false_values", "mismatch_as")), where)
        if name == "stream_info":
            return ColumnType(kind="stream_info")
    plain = ", ".join(_PLAIN_TYPES)
    at.wrong(f"{option!r} is not a column type", f"{plain}, {{datetime: …}} or {{boolean: …}}")
    return ColumnType(kind="string")


def _datetime(options: dict[str, Any], at: At) -> ColumnType:
    constant = options.get("date_constant")
    return ColumnType(
        kind="datetime",
        formats=texts(options.get("formats", []), at.below("formats")),
        date_constant=None if constant is None else str(constant),
    )


def _boolean(options: dict[str, Any], at: At) -> ColumnType:
    mismatch = {"mismatch_as": str(options.get("mismatch_as", "error")).lower()}
    return ColumnType(
        kind="bool",
        true_values=texts(options.get("true_values", []), at.below("true_values")),
        false_values=texts(options.get("false_values", []), at.below("false_values")),
        mismatch_as=one_of(mismatch, "mismatch_as", ("error", "true", "false"), "error", at),  # type: ignore[arg-type]  # it is one of these
    )
