"""Answers to requests that are refused."""

from __future__ import annotations

from pydantic import Field

from parallelrun_api.models.answer import Answer


class ProblemEntry(Answer):
    """A wrong field."""

    pointer: str = Field(examples=["/mini_batch_sise"])
    """The place of the field: a JSON pointer into the job spec, or `/query/…`, `/header/…`."""
    message: str = Field(examples=["unknown field"])
    hint: str | None = Field(default=None, examples=["did you mean 'mini_batch_size'?"])


class Problem(Answer):
    """An error (RFC 9457)."""

    type: str = Field(examples=["urn:parallelrun:problem:invalid_input"])
    title: str = Field(examples=["The request is not valid."])
    status: int = Field(examples=[422])
    detail: str
    instance: str = Field(default="", examples=["/v1/jobs"])
    """The path of the request."""
    code: str = Field(examples=["invalid_input"])
    """Stable; for programs."""
    errors: list[ProblemEntry] = Field(default=[])
    """All wrong fields at once."""
    trace_id: str | None = None
    """Only with status 500: finds the error in the server's log."""
