"""Documents as plain data, from YAML or JSON that anybody may have written."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import yaml

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.untrusted.bounded_yaml import BoundedLoader

MAX_DOCUMENT_BYTES: Final = 1 << 20
_MAX_SHOWN: Final = 200
_EXPRESSION: Final = "${{"


class RepeatedKeys(InvalidInput):
    """Keys of a document are given twice.

    Args:
        document: what it has without the first of each, for whoever looks for all that is wrong with it.
    """

    def __init__(self, message: str = "", *, problems: tuple[Problem, ...] = (), document: object = None) -> None:
        super().__init__(message, problems=problems)
        self.document = document


def load_document(text: str | bytes) -> object:
    """Read YAML or JSON; creates only plain objects.

    Raises:
        RepeatedKeys: keys are given twice, with the line of each.
        InvalidInput: it can't be read, with the line.
    """
    if len(text) > MAX_DOCUMENT_BYTES:
        raise InvalidInput.at("", f"this document is larger than {MAX_DOCUMENT_BYTES >> 20} MiB")
    if text[:1] in ("{", "[", b"{", b"["):
        with suppress(InvalidInput):  # told below, with its line
            return load_json(text)
    try:
        loader = BoundedLoader(text)
        document: object = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        raise InvalidInput(problems=(_problem_of(error, text),)) from error
    except Exception as error:  # PyYAML lets through whatever its constructors raise
        raise InvalidInput.at("", f"not readable as YAML or JSON: {' '.join(str(error).split())}") from error
    if loader.repeated:
        raise RepeatedKeys(problems=tuple(_problem_of(each, text) for each in loader.repeated), document=document)
    return document


def _problem_of(error: yaml.MarkedYAMLError, text: str | bytes) -> Problem:
    mark, why = error.problem_mark, ", ".join(filter(None, (error.context, error.problem)))
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    lines = text.splitlines()[mark.line : mark.line + 1] if mark else []
    line_hint = f"the line is {_shown(lines[0])}" if lines else ""
    if lines and "flow" in (error.context or "") and _EXPRESSION in _shown(lines[0]):
        line_hint += '; within { } and [ ], an expression is in quotes: "${{…}}"'
    return Problem(pointer="", message=f"not readable as YAML or JSON: {where}{why}", hint=line_hint)


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
