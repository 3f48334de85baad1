"""Tokens of people and services, of a server."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from parallelrun.http.transport import Transport
from parallelrun.models import NewToken, Token
from parallelrun.resources.resource import as_model, pages

_PATH = "/v1/tokens"


class Tokens:
    """The tokens that a server has made. Only those with the scope `admin` may use this."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

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
        answer = self._transport.request("PUT", _path(name), body=lambda: {"json": body}, idempotent=False)
        return as_model(answer, NewToken)

    def list(self) -> list[Token]:
        """All of them, by name."""
        return list(pages(self._transport, _PATH, Token))

    def revoke(self, name: str) -> None:
        """Let nobody in with this token any more. Raises NotFound."""
        self._transport.request("DELETE", _path(name), idempotent=False)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
