"""Admits requests to this facade: by tokens and signatures that it has made of the client's own API token."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import parse_qsl

from starlette.responses import Response
from starlette.types import Scope

from parallelrun_api.azure import credentials
from parallelrun_api.azure.answers import refusal
from parallelrun_api.http.errors import Forbidden
from parallelrun_api.http.problems import problem_response
from parallelrun_api.http.token import Token
from parallelrun_core.errors import ParallelRunError, Unauthorized

PREFIX: Final = "/azure"
IDENTITY: Final = f"{PREFIX}/identity"
BLOBS: Final = f"{PREFIX}/blob/"
AUDIENCES: Final = frozenset(
    {"https://management.azure.com", "https://management.core.windows.net", "https://ml.azure.com"}
)
"""What a token may be for."""
_MOST_FIELDS: Final = 50
_READS: Final = frozenset({"GET", "HEAD"})


class AzureDoor:
    """Decides about everything below `/azure`."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def leads_to(self, path: str) -> bool:
        """Return whether it decides about this path."""
        return path == PREFIX or path.startswith(f"{PREFIX}/")

    def admit(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """The name of the API token of which was made what the request shows; empty if none is needed.

        Raises:
            Unauthorized: it shows nothing, or nothing valid.
            Forbidden: it is for another container, or does not allow this.
        """
        path: str = scope["path"]
        if path == IDENTITY:
            return self._by_header(headers)
        if path.startswith(BLOBS):
            return self._by_signature(scope)
        return self._by_token(headers)

    def refusal(self, error: ParallelRunError, path: str) -> Response:
        return refusal(error) or problem_response(error, path)

    def _by_header(self, headers: dict[bytes, bytes]) -> str:
        """Admit a request of the endpoint that hands out tokens: here, and only here, the API token itself is shown."""
        if not self._token.is_needed:
            return ""
        name = self._token.name_of(headers.get(b"x-identity-header", b""))
        if not name:
            raise Unauthorized("IDENTITY_HEADER is not a token of this server: run `parallelrun azure-env` again.")
        return name

    def _by_token(self, headers: dict[bytes, bytes]) -> str:
        scheme, _, rest = headers.get(b"authorization", b"").partition(b" ")
        token = rest.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
        name = credentials.named_in(token)
        secret = self._token.secret_of(name)
        if secret is None or not credentials.is_valid(token, secret, AUDIENCES, now=time.time()):
            raise Unauthorized("A valid token is required; `parallelrun azure-env` says where to get one.")
        return name

    def _by_signature(self, scope: Scope) -> str:
        try:
            query: dict[str, str] = dict(
                parse_qsl(scope.get("query_string", b"").decode("latin-1"), max_num_fields=_MOST_FIELDS)
            )
        except ValueError:
            query = {}
        name: str = query.get(credentials.NAME, "")
        secret = self._token.secret_of(name)
        container = scope["path"].removeprefix(BLOBS).split("/")[1:2]
        right = "r" if scope["method"] in _READS else "w"
        if secret is None or not container:
            raise Unauthorized("The URL is not signed by this server.")
        if not credentials.allows(query, secret, container[0], right, now=time.time()):
            raise Forbidden("The signature of the URL is not valid, has ended, or is for something else.")
        return name
