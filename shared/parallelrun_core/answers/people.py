"""People: their tokens, quotas, use of the cluster, and sessions of their browsers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum, Time

Scope = Literal["read", "submit", "admin"]


class Token(Answer, kw_only=True, frozen=True):
    """A token of a person or a service, without its text."""

    name: Annotated[str, Meta(examples=["anna"])]
    """The owner of what is made with it."""
    scopes: list[OpenEnum[Scope]] = []
    created: Time = ""
    created_by: str = ""
    """The name of the token with which it was made."""
    expires: Time | None = None
    """Time from which it is not valid any more; null: never."""
    is_valid: bool = True
    """False if it has expired."""


class NewToken(Token, kw_only=True, frozen=True):
    """A token that was just made."""

    token: str
    """Its text, which nobody can show again: the server stores a hash of it."""


class Quota(Answer, kw_only=True, frozen=True):
    """The limits of a person; null: there is none."""

    name: Annotated[str, Meta(examples=["anna"])]
    """The owner, or `everybody`: those who have no quota of their own."""
    jobs: int | None = None
    """Jobs that have not ended; a pipeline counts once."""
    submissions_per_minute: int | None = None
    """Jobs that are accepted in a minute."""
    slots: int | None = None
    """Workers that their jobs have at the same time."""
    nodes: int | None = None
    """Nodes on which their jobs have workers at the same time."""
    job_bytes: int | None = None
    """Bytes of the folders of their jobs that have ended."""


class QuotaList(Answer, kw_only=True, frozen=True):
    """All quotas, by name."""

    items: list[Quota]


class UsageOfWeek(Answer, kw_only=True, frozen=True):
    """The use of slots and GPUs by a person in a week."""

    week: Annotated[str, Meta(examples=["2026-W48"])]
    """The week by ISO 8601, in UTC."""
    owner: str = ""
    """The name of a token; empty: whoever runs the server."""
    slot_hours: float = 0.0
    """Hours of workers, from their start to their end: a worker occupies a slot."""
    gpu_hours: float = 0.0
    """Hours of GPUs that workers had."""
    job_bytes: int | None = None
    """Bytes of the folders of their jobs that have ended, at the last sweep; null: only the latest week has it."""
    week_bytes: int = 0
    """Bytes of the folders of their jobs that ended in that week, of those that were kept at the last sweep."""
    cost: float = 0.0
    """By `--cost-per-slot-hour` and `--cost-per-gpu-hour`."""


class UsageList(Answer, kw_only=True, frozen=True):
    """The use by week and person, the latest week first."""

    items: list[UsageOfWeek]


class TokenList(Answer, kw_only=True, frozen=True):
    """The tokens that this server has made, by name."""

    items: list[Token]


class Session(Answer, kw_only=True, frozen=True):
    """The session of this browser, if it has one."""

    is_signed_in: bool
    token_name: str
    """The name of the token that it has signed in with; empty if none is needed."""
    is_token_needed: bool
    scopes: list[OpenEnum[Scope]] = []
    """The scopes of that token: what this browser may do."""
    has_people: bool = False
    """True if several people have tokens of their own: then it matters whose a job is."""
    ends: Time | None
    """Time when it has to sign in again; null: never."""


class SignInCode(Answer, kw_only=True, frozen=True):
    """The code that signs in a browser in place of the token, once."""

    code: str
    ends: Time
    link: str
    """A path of this server: open it in a browser."""
