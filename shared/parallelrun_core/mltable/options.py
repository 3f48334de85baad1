"""Readers for the options of a step: each returns what it can use, and adds a problem for what it can't."""

from __future__ import annotations

import codecs
from collections.abc import Collection
from typing import Any, Final

from parallelrun_core.problems import At
from parallelrun_core.spec.fields import MiniBatchSize

IGNORED: Final = ("path_column", "partition_size")
"""Options of read steps that change nothing here."""
ENCODINGS: Final = {
    "utf8": "utf-8", "utf-8": "utf-8", "utf8 bom": "utf-8", "utf-8 bom": "utf-8",
    # The original reads Latin 1 as Windows does, too.
    "iso88591": "cp1252", "iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252",
    "windows1252": "cp1252", "windows-1252": "cp1252",
    "ascii": "ascii", "utf16": "utf-16", "utf-16": "utf-16", "utf32": "utf-32", "utf-32": "utf-32",
}  # fmt: skip
_ASCII: Final = bytes(range(128))
_NO_CODE_PAGES: Final = ("hz", "idna", "iso2022", "punycode", "raw_unicode", "unicode_escape", "utf_7", "utf_8_sig")
"""How Python's names of encodings begin in which the bytes of ASCII may stand for something else."""


def options_of(options: object, at: At, names: tuple[str, ...]) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, dict):
        at.wrong(f"must be a mapping of options, not {options!r}")
        return {}
    at.known_keys(options, names)
    return options


def flag(options: dict[str, Any], name: str, at: At) -> bool:
    """An option that is true or false; false when it isn't given."""
    value = options.get(name, False)
    return bool(value) if at.below(name).is_of(value, bool, "true or false") else False


def size_in_bytes(options: dict[str, Any], name: str, default: int, at: At) -> int:
    """An option that is a number of bytes, such as `64mb`."""
    value = options.get(name, default)
    try:
        return MiniBatchSize.parse(value if isinstance(value, int) else str(value)).bytes
    except (TypeError, ValueError):
        at.below(name).wrong(f"{value!r} is not a size", "a number of bytes, such as 512mb or 1gb")
        return default


def one_of(options: dict[str, Any], name: str, choices: Collection[str], default: str, at: At) -> str:
    """An option that is one of some words, in any letter case."""
    value = options.get(name, default)
    text = value.lower() if isinstance(value, str) else value
    if text not in choices:
        at.below(name).wrong(f"{value!r} is not known", f"one of {', '.join(choices)}")
        return default
    return str(text)


def encoding(options: dict[str, Any], at: At) -> str:
    """Python's name of an encoding of text: of UTF-8, 16 or 32, or of one that has the bytes of ASCII."""
    value = options.get("encoding", "utf8")
    name = value.lower() if isinstance(value, str) else ""
    if name in ENCODINGS:
        return ENCODINGS[name]
    if (python_name := _code_page(name)) is None:
        hint = f"one of {', '.join(ENCODINGS)}, or another one that Python knows and that has the bytes of ASCII"
        at.below("encoding").wrong(f"{value!r} is not known", hint)
        return "utf-8"
    return python_name


def _code_page(name: str) -> str | None:
    """Python's name of an encoding in which the bytes of ASCII are its characters and nothing else; None: no such."""
    try:
        codec = codecs.lookup(name)
        if codec.name.replace("-", "_").startswith(_NO_CODE_PAGES) or _ASCII.decode(name) != _ASCII.decode("ascii"):
            return None
    except (LookupError, UnicodeError, ValueError):
        return None
    return codec.name


def texts(option: object, at: At) -> list[str]:
    """A string or a list of strings."""
    entries = option if isinstance(option, list) else [option]
    if not all(isinstance(entry, str | int | float | bool) for entry in entries):
        at.wrong("must be a string or a list of strings")
        return []
    return [str(entry) for entry in entries]
