"""Answers about who is signed in."""

from __future__ import annotations

from pydantic import Field

from parallelrun_api.models.answer import Answer, Time
from parallelrun_api.models.people import Scope


class Session(Answer):
    """The session of this browser, if it has one."""

    is_signed_in: bool
    token_name: str
    """The name of the token that it has signed in with; empty if none is needed."""
    is_token_needed: bool
    scopes: list[Scope] = Field(default=[])
    """The scopes of that token: what this browser may do."""
    has_people: bool = False
    """True if several people have tokens of their own: then it matters whose a job is."""
    ends: Time | None
    """Time when it has to sign in again; null: never."""


class SignInCode(Answer):
    """The code that signs in a browser in place of the token, once."""

    code: str
    ends: Time
    link: str
    """A path of this server: open it in a browser."""
