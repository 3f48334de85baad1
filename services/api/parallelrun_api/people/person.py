"""The person of a request, and the scopes of their token."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, get_args

import msgspec

from parallelrun_core.storage.path_rule import Places

Scope = Literal["read", "submit", "admin"]
"""See; submit jobs and change one's own things; change everything, and make tokens."""
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
ONLY_ONE: Final = "default"
"""The name of the token that is set by itself, or that the server has made."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever makes a request, by the token that it shows.

    Args:
        name: that of the token; empty: the server requires none.
        scopes: those of the token.
        sees_all: False where a person sees only what is their own.
        is_operator: they may define computes and make tokens, by the scope of a token that was made here. Of other
            tokens, `Operators` knows.
    """

    name: str = ""
    scopes: frozenset[Scope] = frozenset(SCOPES)
    sees_all: bool = True
    is_operator: bool = False

    @property
    def owner(self) -> str:
        """The owner of what they make. Empty for the server's own token: then it belongs to whoever runs the server."""
        return "" if self.name == ONLY_ONE else self.name

    @property
    def is_admin(self) -> bool:
        return "admin" in self.scopes

    def may_change(self, owner: str) -> bool:
        return self.is_admin or ("submit" in self.scopes and owner == self.owner)

    def may_see(self, owner: str) -> bool:
        return self.is_admin or self.sees_all or owner == self.owner

    @property
    def only_owner(self) -> str | None:
        """The one owner whose things they see; None: they see everybody's."""
        return None if self.is_admin or self.sees_all else self.owner


NOBODY: Final = Person(scopes=frozenset(), sees_all=False)
"""Whoever makes a request for which no token is needed."""
CURRENT: Final[ContextVar[Person]] = ContextVar("person", default=Person())  # noqa: B039 - frozen
"""The person of the request that is being answered; outside of one, whoever runs the server."""


def is_seen(owner: str) -> bool:
    """Return whether the person of the request sees what is an owner's."""
    return CURRENT.get().may_see(owner)


def seen_places(places: Places) -> Places:
    """Return where paths may be, for the person of the request: not in outputs of jobs that they don't see."""
    owner = CURRENT.get().only_owner
    return places if owner is None else msgspec.structs.replace(places, only_owner=owner)
