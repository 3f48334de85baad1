"""Answers from models, which are not validated a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from pydantic import BaseModel


def json_answer(model: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A model as the whole answer."""
    return encoded_answer(model.model_dump_json(), status, headers)


def encoded_answer(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A model as the whole answer, encoded already."""
    return Response(
        text,
        status_code=status,
        headers={"Cache-Control": "no-store", **(headers or {})},
        media_type="application/json",
    )
