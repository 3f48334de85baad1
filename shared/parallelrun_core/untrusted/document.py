"""Documents as plain data, from YAML or JSON that anybody may have written."""

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
