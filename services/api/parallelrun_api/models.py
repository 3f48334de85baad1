"""Bodies of requests, which pydantic checks, and errors. Other answers are in `parallelrun_core.answers`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from parallelrun_core.answers.people import Scope
from parallelrun_core.described import Described
from parallelrun_core.names.assets import kinds
from parallelrun_core.names.patterns import ASSET_NAME


class RequestModel(Described):
    """A model of what a request brings: exactly these fields, each of its type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TokenRequest(RequestModel):
    """The token that is to be made."""

    scopes: list[Scope] = Field(default=["read", "submit"], min_length=1, max_length=3)
    """`read`: see; `submit`: also submit jobs, and change one's own things; `admin`: also change everybody's things,
    define computes and datastores, and make tokens. Each one has those before it."""
    days: float = Field(default=0, ge=0, le=36_500, allow_inf_nan=False)
    """Days for which it is valid; 0: until it is revoked."""
    replace: bool = False
    """Make it in place of the token of this name, which is not valid any more then."""


class QuotaRequest(RequestModel):
    """The limits of a person; null: there is none."""

    jobs: int | None = Field(default=None, ge=0, le=1_000_000)
    """Jobs that have not ended; a pipeline counts once."""
    submissions_per_minute: int | None = Field(default=None, ge=0, le=1_000_000)
    """Jobs that are accepted in a minute."""
    slots: int | None = Field(default=None, ge=0, le=1_000_000)
    """Workers that their jobs have at the same time."""
    nodes: int | None = Field(default=None, ge=0, le=1_000_000)
    """Nodes on which their jobs have workers at the same time."""
    job_bytes: int | None = Field(default=None, ge=0, le=2**53)
    """Bytes of the folders of their jobs that have ended."""


def _asset_kind(kind: str) -> str:
    if kind not in kinds():
        raise ValueError(f"must be one of {', '.join(kinds())}")
    return kind


Kind = Annotated[str, AfterValidator(_asset_kind), WithJsonSchema({"type": "string", "enum": list(kinds())})]
"""A kind of assets."""


class LabelRequest(RequestModel):
    """The version that a label is to stand for."""

    version: str = Field(pattern=ASSET_NAME, examples=["2"])


class ProblemEntry(Described):
    """A wrong field."""

    pointer: str = Field(examples=["/mini_batch_sise"])
    """The place of the field: a JSON pointer into the job spec, or `/query/…`, `/header/…`."""
    message: str = Field(examples=["unknown field"])
    hint: str | None = Field(default=None, examples=["did you mean 'mini_batch_size'?"])


class Problem(Described):
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
