"""The documents that the client sends. Much of one is remembered and shown again, so it has limits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from starlette.requests import Request

from parallelrun_api.submission.upload import read_document
from parallelrun_core.errors import InvalidInput

MAX_DEPTH: Final = 64
MAX_LABELS_BYTES: Final = 64 << 10
"""Of all that may change of a job."""


async def read_body(request: Request) -> object:
    """The document in a body.

    Raises:
        UnsupportedMediaType, BodyTooLarge, InvalidInput: it can't be read, or is nested too deep.
    """
    document = await read_document(request)
    check_depth(document)
    return document


async def read_resource(request: Request, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document in a body that describes a thing, such as "a job", and its properties. Raises as `read_body`."""
    document = await read_body(request)
    properties = document.get("properties") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(properties, dict):
        raise InvalidInput.at("/properties", f"{what} has properties")
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
