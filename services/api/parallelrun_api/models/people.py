"""Answers about tokens and the people who have them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parallelrun_api.models.answer import Answer, Asked, Time

Scope = Literal["read", "submit", "admin"]


class TokenRequest(Asked):
    """The token that is to be made."""

    scopes: list[Scope] = Field(default=["read", "submit"], min_length=1, max_length=3)
    """`read`: see; `submit`: also submit jobs, and change one's own things; `admin`: also change everybody's things,
    define computes and datastores, and make tokens. Each one has those before it."""
    days: float = Field(default=0, ge=0, le=36_500, allow_inf_nan=False)
    """Days for which it is valid; 0: until it is revoked."""
    replace: bool = False
    """Make it in place of the token of this name, which is not valid any more then."""


class Token(Answer):
    """A token of a person or a service, without its text."""

    name: str = Field(examples=["anna"])
    """The owner of what is made with it."""
    scopes: list[Scope]
    created: Time
    created_by: str
    """The name of the token with which it was made."""
    expires: Time | None = None
    """Time from which it is not valid any more; null: never."""
    is_valid: bool
    """False if it has expired."""


class NewToken(Token):
    """A token that was just made."""

    token: str
    """Its text, which nobody can show again: the server stores a hash of it."""


class QuotaRequest(Asked):
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


class Quota(Answer):
    """The limits of a person; null: there is none."""

    name: str = Field(examples=["anna"])
    """The owner, or `everybody`: those who have no quota of their own."""
    jobs: int | None
    """Jobs that have not ended; a pipeline counts once."""
    submissions_per_minute: int | None
    """Jobs that are accepted in a minute."""
    slots: int | None
    """Workers that their jobs have at the same time."""
    nodes: int | None
    """Nodes on which their jobs have workers at the same time."""
    job_bytes: int | None
    """Bytes of the folders of their jobs that have ended."""


class QuotaList(Answer):
    """All quotas, by name."""

    items: list[Quota]


class UsageOfWeek(Answer):
    """The use of slots and GPUs by a person in a week."""

    week: str = Field(examples=["2026-W48"])
    """The week by ISO 8601, in UTC."""
    owner: str
    """The name of a token; empty: whoever runs the server."""
    slot_hours: float
    """Hours of workers, from their start to their end: a worker occupies a slot."""
    gpu_hours: float
    """Hours of GPUs that workers had."""
    job_bytes: int | None = None
    """Bytes of the folders of their jobs that have ended, at the last sweep; null: only the latest week has it."""
    cost: float
    """By `--cost-per-slot-hour` and `--cost-per-gpu-hour`."""


class UsageList(Answer):
    """The use by week and person, the latest week first."""

    items: list[UsageOfWeek]


class TokenList(Answer):
    """The tokens that this server has made, by name."""

    items: list[Token]
