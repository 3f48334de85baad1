"""Documents as plain data, from YAML or JSON, and changes to them from a command line."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import yaml

from parallelrun_core.errors import InvalidInput
from parallelrun_core.untrusted.bounded_yaml import BoundedLoader

MAX_DOCUMENT_BYTES: Final = 1 << 20
_MAX_SHOWN: Final = 200
_BESIDE_A_PATH: Final = ("path", "type", "mode")
_INPUTS: Final = "inputs"
_ONLY_INPUT: Final = "data"
"""What the only input is called where `inputs` is a plain text."""


def load_document(text: str | bytes) -> object:
    """Read YAML or JSON; creates only plain objects.

    Raises:
        InvalidInput: it can't be read, with the line.
    """
    if len(text) > MAX_DOCUMENT_BYTES:
        raise InvalidInput.at("", f"this document is larger than {MAX_DOCUMENT_BYTES >> 20} MiB")
    if text[:1] in ("{", "[", b"{", b"["):
        with suppress(InvalidInput):  # told below, with its line
            return load_json(text)
    try:
        return yaml.load(text, Loader=BoundedLoader)  # noqa: S506 - it is safe, and bounded
    except yaml.MarkedYAMLError as error:
        mark, why = error.problem_mark, ", ".join(filter(None, (error.context, error.problem)))
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        lines = text.splitlines()[mark.line : mark.line + 1] if mark else []
        line_hint = f"the line is {_shown(lines[0])}" if lines else ""
        raise InvalidInput.at("", f"not readable as YAML or JSON: {where}{why}", line_hint) from error
    except Exception as error:  # PyYAML lets through whatever its constructors raise
        raise InvalidInput.at("", f"not readable as YAML or JSON: {' '.join(str(error).split())}") from error


def load_json(text: str | bytes) -> Any:
    """Read JSON proper, in which a tab may indent.

    Raises:
        InvalidInput: it can't be read.
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_repeated_keys)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput.at("", "not readable as JSON: half of a character, without the other one") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at("", f"not readable as JSON: {error}") from error
    return document


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r} is given twice")
    return document


def _shown(line: str | bytes) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return repr(text.strip()[:_MAX_SHOWN])


def set_field(document: object, assignment: str) -> None:
    """Apply one `path=value` from a command line; a value that can't be read as YAML is a plain string.

    A path goes through mappings by name and through lists by number, as in `inputs.images.path` or `tasks.0.name`;
    missing mappings on the way are created. A string that is short for a mapping with a `path`, or for inputs of which
    one is called `data`, becomes one.

    Raises:
        InvalidInput: there is no '=', or the path goes through something without parts.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise InvalidInput.at("--set", f"{assignment!r} is not PATH=VALUE")
    *folders, last = path.split(".")
    for name, next_name in zip(folders, [*folders[1:], last], strict=False):
        inner = _part(document, name, path)
        longer = _in_long(name, inner, next_name)
        if longer is not inner:
            _put(document, name, longer, path)
            inner = longer
        document = inner
    _put(document, last, _value(path, text), path)


def _in_long(name: str, value: object, part: str) -> object:
    """The mapping for which a value is short, if a part of this name can be set there; else the value."""
    if value is None:
        return {}
    if isinstance(value, str) and part in _BESIDE_A_PATH:
        return {"path": value}
    return {_ONLY_INPUT: value} if isinstance(value, str) and name == _INPUTS else value


def _value(path: str, text: str) -> object:
    if text.startswith(("|", ">")):  # in YAML the head of a text of many lines, which no value on a command line is
        return text
    try:
        return load_document(text)
    except InvalidInput as error:
        if text.startswith(("[", "{")):
            raise InvalidInput.at("--set", f"{path}={text}: this list or mapping can't be read as YAML") from error
        return text


def _part(document: object, name: str, path: str) -> object:
    match document:
        case dict():
            return document.get(name)
        case list() if name.isdecimal() and int(name) < len(document):
            part: object = document[int(name)]
            return part
        case list():
            raise InvalidInput.at("--set", f"{path!r}: the list before {name!r} has {len(document)} parts, from 0")
    raise InvalidInput.at("--set", f"{path!r}: what stands before {name!r} is a plain value, and has no parts")


def _put(document: object, name: str, value: object, path: str) -> None:
    match document:
        case dict():
            document[name] = value
        case list() if name.isdecimal() and int(name) < len(document):
            document[int(name)] = value
        case list() if name.isdecimal() and int(name) == len(document):
            document.append(value)
        case _:
            raise InvalidInput.at("--set", f"{path!r}: {name!r} can't be set here")
