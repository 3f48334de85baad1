"""The documents that the client sends. Much of one is remembered and shown again, so it has limits, and is masked:
without the values of environment variables, as in all answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from starlette.requests import Request

from parallelrun_api.submission.upload import read_document
from parallelrun_core.errors import InvalidInput
from parallelrun_core.wire.masking import MASK

MAX_DEPTH: Final = 64
MAX_LABELS_BYTES: Final = 64 << 10
"""Of all that may change of a job."""
_VARIABLES: Final = ("environmentVariables", "environment_variables")


async def read_body(request: Request) -> object:
    """The document in a body.

    Raises:
        UnsupportedMediaType, BodyTooLarge, InvalidInput: it can't be read, or is nested too deep.
    """
    document = await read_document(request)
    check_depth(document)
    return document


async def read_resource(request: Request, noun: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document in a body that describes a thing, such as "a job", and its properties. Raises as `read_body`."""
    document = await read_body(request)
    properties = document.get("properties") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(properties, dict):
        raise InvalidInput.at("/properties", f"{noun} has properties")
    return document, properties


def check_depth(document: object) -> None:
    """Make sure that whatever goes through this document comes to an end of it.

    Raises:
        InvalidInput: it is nested too deep.
    """
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        parts = chain.from_iterable(_parts(each) for each in level)
        level = list({id(part): part for part in parts if isinstance(part, dict | list)}.values())
        if not level:
            return
    raise InvalidInput.at("", f"it is nested more than {MAX_DEPTH} levels deep")


def check_labels(labels: dict[str, Any]) -> None:
    """Make sure that the labels of a job are no more than may be remembered.

    Raises:
        InvalidInput: they are.
    """
    size = len(json.dumps(labels))
    if size > MAX_LABELS_BYTES:
        message = f"the labels of a job, its tags and properties have {size:,} bytes together"
        raise InvalidInput.at("/properties", message, f"at most {MAX_LABELS_BYTES:,} are kept")


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def masked(value: Any) -> Any:
    """A value with all that is in it, with a mask in place of the value of each environment variable."""
    if isinstance(value, list):
        return [masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: dict.fromkeys(each, MASK) if key in _VARIABLES and isinstance(each, dict) else masked(each)
        for key, each in value.items()
    }


def check_not_masked(sent: Any) -> None:
    """Make sure that nothing comes back that was masked in an answer: a script would take the mask for the value.

    Raises:
        InvalidInput: something does.
    """
    for name in _masked_names(sent):
        hint = "answers don't have the values of environment variables: set it again"
        raise InvalidInput.at(f"/environment_variables/{name[:80]}", "its value was left out of an answer", hint)


def is_same(sent: Any, before: Any) -> bool:
    """Return whether a document is an earlier one, also if it comes back with masks in place of its values."""
    if isinstance(sent, list) and isinstance(before, list):
        return len(sent) == len(before) and all(map(is_same, sent, before))
    if not isinstance(sent, dict) or not isinstance(before, dict):
        return bool(sent == before)
    return sent.keys() == before.keys() and all(
        is_same({name: text for name, text in each.items() if text != MASK}, _without_masked(before[key], each))
        if key in _VARIABLES and isinstance(each, dict)
        else is_same(each, before[key])
        for key, each in sent.items()
    )


def _without_masked(before: Any, sent: dict[str, Any]) -> Any:
    if not isinstance(before, dict):
        return before
    return {name: text for name, text in before.items() if sent.get(name) != MASK}


def _masked_names(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _masked_names(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in _VARIABLES and isinstance(each, dict):
                yield from (str(name) for name, text in each.items() if text == MASK)
            else:
                yield from _masked_names(each)
