"""Tokens as the server answers."""

from __future__ import annotations

import msgspec


class Token(msgspec.Struct, kw_only=True, frozen=True):
    """A token of a person or a service, without its text."""

    name: str
    """The owner of what is made with it."""
    scopes: list[str] = []
    """`read`, `submit`, `admin`."""
    created: str | None = None
    created_by: str = ""
    """The name of the token with which it was made."""
    expires: str | None = None
    """Time from which it is not valid any more; None: never."""
    is_valid: bool = True
    """False if it has expired."""


class NewToken(Token, kw_only=True, frozen=True):
    """A token that was just made."""

    token: str
    """Its text, which nobody can show again."""


class UsageOfWeek(msgspec.Struct, kw_only=True, frozen=True):
    """The use of slots and GPUs by a person in a week."""

    week: str
    """The week by ISO 8601, in UTC: `2026-W48`."""
    owner: str = ""
    """The name of a token; empty: whoever runs the server."""
    slot_hours: float = 0.0
    gpu_hours: float = 0.0
    job_bytes: int | None = None
    """Bytes of the folders of their jobs that have ended; None: only the latest week has it."""
    cost: float = 0.0


class Quota(msgspec.Struct, kw_only=True, frozen=True):
    """The limits of a person; None: there is none."""

    name: str
    """The owner, or `everybody`."""
    jobs: int | None = None
    """Jobs that have not ended; a pipeline counts once."""
    submissions_per_minute: int | None = None
    slots: int | None = None
    """Workers that their jobs have at the same time."""
    nodes: int | None = None
    """Nodes on which their jobs have workers at the same time."""
    job_bytes: int | None = None
    """Bytes of the folders of their jobs that have ended."""
