"""Keys and dates in the paths of files: `{store}/{brand}/{when:yyyy/MM/dd}/*.csv` (reference §4.4).

A format is matched against the path below the table's folder, and ends where the path ends: a placeholder takes as
much as it can of one name and never a `/`. The original searches the whole path for the leftmost match, which binds
the keys to folders above the data when a format ends in a wildcard, or when a folder's name has a dot. Where both
find something sensible they find the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from itertools import dropwhile
from typing import Final, NamedTuple

import msgspec

_PLACEHOLDER: Final = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_NAMED: Final = re.compile(r"([A-Za-z_]\w*)=")
_DATE_PART: Final = re.compile(r"yyyy|MM|dd|HH|mm|ss")
_DIRECTIVES: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


class PartitionFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format, compiled for the master and the workers."""

    pattern: str
    """Regular expression with a group for each name, in order."""
    names: list[str]
    date: str = ""
    """The name of the date, if there is one."""
    date_format: str = ""
    """The date's format, as for strptime."""
    starts_above: bool = False
    """True if it begins with a fixed folder name, which may be that of a folder above the table's own."""


class _Part(NamedTuple):
    pattern: str
    name: str = ""
    date_format: str = ""


def parse_partition_format(text: str) -> PartitionFormat:
    """Compile a format.

    Raises:
        ValueError: it names no column, a column twice or two dates, or can't be read.
    """
    parts: list[_Part] = []
    at = 0
    stripped = text.removeprefix("*/").lstrip("/")
    for placeholder in _PLACEHOLDER.finditer(stripped):
        parts.append(_Part(_literal(stripped[at : placeholder.start()])))
        parts.append(_placeholder(placeholder.group(1).strip(), placeholder.group(2)))
        at = placeholder.end()
    parts.append(_Part(_literal(stripped[at:])))
    named = [part for part in parts if part.name]
    names = [part.name for part in named]
    dates = [part for part in named if part.date_format]
    if not names:
        raise ValueError("it names no column: write {name} for a part of the path that is to become one")
    if len(set(names)) < len(names):
        raise ValueError("it names a column twice")
    if len(dates) > 1:
        raise ValueError("it has two dates; write them as one, as in {when:yyyy/MM/dd}")
    tail = ".*" if stripped.endswith("/") else ""
    first = stripped.partition("/")[0]
    return PartitionFormat(
        pattern="(?:^|/)" + "".join(part.pattern for part in parts) + tail + r"\Z",
        names=names,
        date=dates[0].name if dates else "",
        date_format=dates[0].date_format if dates else "",
        starts_above=not _PLACEHOLDER.search(first) and "*" not in first,
    )


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError("a brace is not closed, or is empty")
    return "[^/]*".join(map(re.escape, re.split(r"\*+", text)))


def _placeholder(name: str, date: str | None) -> _Part:
    if not name:
        raise ValueError("a placeholder has no name")
    if date is None:
        return _Part("([^/]+)", name)
    directives, pattern, at = "", "", 0
    for part in _DATE_PART.finditer(date):
        between = date[at : part.start()]
        directives += between.replace("%", "%%") + _DIRECTIVES[part.group()]
        pattern += re.escape(between) + rf"\d{{{len(part.group())}}}"
        at = part.end()
    if not pattern or re.search("[A-Za-z]", date[at:]):
        raise ValueError(f"{date!r} is not a date format; use yyyy, MM, dd, HH, mm and ss")
    return _Part(f"({pattern}{re.escape(date[at:])})", name, directives + date[at:])


def format_of_paths(paths: Iterable[str], root: str, columns: Collection[str] = ()) -> str:
    """Return the format that makes a column of each folder `name=value` of the paths of files below `root`; empty: they
    have no such folders, or not the same ones.

    Args:
        columns: names that need no column.
    """
    formats = {_format_of_path(path.removeprefix(root).lstrip("/"), columns) for path in paths}
    return formats.pop() if len(formats) == 1 else ""


def _format_of_path(path: str, columns: Collection[str]) -> str:
    found = [_NAMED.match(folder) for folder in path.split("/")[:-1]]
    parts = [f"{name[1]}={{{name[1]}}}" if name and name[1] not in columns else "*" for name in found]
    return "/".join([*dropwhile("*".__eq__, parts), "*"]) if set(parts) - {"*"} else ""


def match_partition(pattern: re.Pattern[str], starts_above: bool, path: bytes, root: bytes) -> list[str] | None:
    """The values in a path, in the order of the format's `names`; None when the path doesn't match.

    Args:
        pattern: that of the format, compiled.
        starts_above: as in the format.
    """
    whole = os.fsdecode(path)
    folder = os.fsdecode(root).rstrip("/") + "/"
    below = whole[len(folder) :] if whole.startswith(folder) else whole
    match = pattern.search(below) or (pattern.search(whole) if starts_above else None)
    return list(match.groups()) if match else None
