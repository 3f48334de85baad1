"""Tokens of people and services, of a server."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from parallelrun.models import NewToken, Token
from parallelrun.resources.resource import Resource

_PATH = "/v1/tokens"


class Tokens(Resource):
    """The tokens that a server has made. Only those with the scope `admin` may use this."""

    def create(
        self, name: str, *, scopes: Sequence[str] = ("submit",), days: float = 0.0, replace: bool = False
    ) -> NewToken:
        """Make a token for a person or a service. Its text is in the answer, and nobody can show it again.

        Args:
            name: the owner of what is made with it.
            scopes: `read`, `submit` or `admin`; each one has those before it.
            days: days for which it is valid; 0: until it is revoked.
            replace: in place of the token of this name, which is not valid any more then.

        Raises:
            Conflict: there is one of this name, or the server makes none.
            Unauthorized: the token of this client may not.
        """
        body = {"scopes": list(scopes), "days": days, "replace": replace}
        return self._ask("PUT", _path(name), NewToken, body, idempotent=False)

    def list(self) -> list[Token]:
        """All of them, by name."""
        return list(self._all(_PATH, Token))

    def revoke(self, name: str) -> None:
        """Let nobody in with this token any more. Raises NotFound."""
        self._transport.request("DELETE", _path(name), idempotent=False)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
