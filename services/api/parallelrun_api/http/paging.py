"""Pages of long lists: an opaque token marks where the next one begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Hashable
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from starlette.responses import Response

from parallelrun_api.http.concurrency import ConcurrencyLimiter
from parallelrun_core.errors import InvalidInput

MAX_LIMIT: Final = 500
DEFAULT_LIMIT: Final = 50

Limit = Annotated[
    int, Query(description=f"Maximum number of items, from 1 to {MAX_LIMIT}; other values are moved to the nearer end.")
]
PageToken = Annotated[
    str, Query(max_length=200, description="`next_page_token` of the page before; empty for the first one.")
]


PathToken = Annotated[
    str, Query(max_length=16_000, description="`next_page_token` of the page before; empty for the first one.")
]
"""A token with a path in it."""


def clamped(limit: int) -> int:
    """The limit, moved into its range."""
    return max(1, min(limit, MAX_LIMIT))


async def page_answer(
    lane: ConcurrencyLimiter,
    page: Callable[..., msgspec.Struct],
    query: tuple[str, *tuple[Hashable, ...]],
    read: Callable[[str, int], tuple[list[Any], str | None]],
    *,
    limit: int,
    page_token: str,
) -> Response:
    """Return one page of a list, as the whole answer.

    Args:
        page: its class, which has `items` and `next_page_token`.
        query: the kind of the list, whose tokens no other list accepts, and what tells reads of this kind apart.
        read: from where the page before has ended, and the number of items, to these, and where this page ends; None if
            it is the last.

    Raises:
        InvalidInput: the token is not of this list.
        TooManyReads: too many wait already.
    """
    kind, most = query[0], clamped(limit)
    before = decode_token(page_token, kind, 1)[0] if page_token else ""

    def read_page() -> msgspec.Struct:
        items, last = read(before, most)
        return page(items=items, next_page_token=encode_token(kind, last) if last else None)

    return await lane.answer((*query, before, most), read_page)


def encode_token(kind: str, *position: str | int) -> str:
    """A token of one list; no other list accepts it."""
    text = ".".join([kind, *map(str, position)])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_token(token: str, kind: str, length: int) -> list[str]:
    """The position in a token, in `length` parts; only the last one may have dots in it.

    Raises:
        InvalidInput: it isn't a token of this list.
    """
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _not_ours(token) from error
    named, *position = text.split(".", length)
    if named != kind or len(position) != length:
        raise _not_ours(token)
    return position


def decode_numbers(token: str, kind: str, length: int) -> list[int]:
    """The position in a token that consists of numbers.

    Raises:
        InvalidInput: it isn't a token of this list.
    """
    position = decode_token(token, kind, length)
    if not all(text.isascii() and text.isdecimal() and len(text) <= 18 for text in position):
        raise _not_ours(token)
    return [int(text) for text in position]


def _not_ours(token: str) -> InvalidInput:
    return InvalidInput.at("/query/page_token", f"{token[:50]!r} is not a token of this list")
