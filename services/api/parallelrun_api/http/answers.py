"""Answers as JSON."""

from __future__ import annotations

import msgspec
from starlette.responses import Response


def encoded(answer: msgspec.Struct) -> str:
    """Return the JSON of an answer."""
    return msgspec.json.encode(answer).decode()


def json_answer(answer: msgspec.Struct, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer as the whole body."""
    return encoded_answer(encoded(answer), status, headers)


def encoded_answer(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer that is JSON already as the whole body."""
    return Response(
        text,
        status_code=status,
        headers={"Cache-Control": "no-store", **(headers or {})},
        media_type="application/json",
    )


def no_content() -> Response:
    """Return the answer of a request that leaves nothing to show."""
    return Response(status_code=204, headers={"Cache-Control": "no-store"})
