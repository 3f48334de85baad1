"""Readers for the options of a step: each returns what it can use, and adds a problem for what it can't."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from parallelrun_core.problems import At

IGNORED: Final = ("path_column", "partition_size")
"""Options of read steps that change nothing here."""
ENCODINGS: Final = {
    "utf8": "utf-8", "utf-8": "utf-8", "utf8 bom": "utf-8", "utf-8 bom": "utf-8",
    # The original reads Latin 1 as Windows does, too.
    "iso88591": "cp1252", "iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252",
    "windows1252": "cp1252", "windows-1252": "cp1252",
    "ascii": "ascii", "utf16": "utf-16", "utf-16": "utf-16",
}  # fmt: skip


def options_of(given: object, at: At, known: tuple[str, ...]) -> dict[str, Any]:
    """The options of a step, which may have none."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        at.wrong(f"must be a mapping of options, not {given!r}")
        return {}
    at.known_keys(given, known)
    return given


def flag(options: dict[str, Any], name: str, at: At) -> bool:
    """An option that is true or false; false when it isn't given."""
    value = options.get(name, False)
    return bool(value) if at.below(name).is_of(value, bool, "true or false") else False


def one_of(options: dict[str, Any], name: str, known: Collection[str], default: str, at: At) -> str:
    """An option that is one of some words, in any letter case."""
    value = options.get(name, default)
    text = value.lower() if isinstance(value, str) else value
    if text not in known:
        at.below(name).wrong(f"{value!r} is not known", f"one of {', '.join(known)}")
        return default
    return str(text)


def encoding(options: dict[str, Any], at: At) -> str:
    """Python's name of an encoding of text."""
    return ENCODINGS[one_of(options, "encoding", ENCODINGS, "utf8", at)]


def texts(given: object, at: At) -> list[str]:
    """A string or a list of strings."""
    entries = given if isinstance(given, list) else [given]
    if not all(isinstance(entry, str | int | float | bool) for entry in entries):
        at.wrong("must be a string or a list of strings")
        return []
    return [str(entry) for entry in entries]
