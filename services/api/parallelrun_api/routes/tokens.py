"""Tokens of people and services."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final, cast

from fastapi import Depends, Path, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.http.token import Token as ServerToken
from parallelrun_api.models import TokenRequest
from parallelrun_api.people.issued import NAME_PATTERN, IssuedToken, IssuedTokens
from parallelrun_api.people.person import CURRENT, SCOPES, Scope
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.people import NewToken, Token, TokenList
from parallelrun_core.errors import Conflict

router = Operations("tokens")

_NO_KEY: Final = (
    "This server can't make tokens: give it a token of its own (--token-file), or a key that seals them "
    "(--computes-key-file)."
)
_NOT_NEEDED: Final = "This server requires no token (--insecure), so it makes none."


def _issued_of(request: Request) -> IssuedTokens:
    token = cast("ServerToken", request.app.state.token)
    if token.issued is None:
        raise Conflict(_NO_KEY if token.is_needed else _NOT_NEEDED)
    return token.issued


Issued = Annotated[IssuedTokens, Depends(_issued_of)]
Name = Annotated[str, Path(description="Name of a token.", pattern=NAME_PATTERN, examples=["anna"])]


@router.operation("GET /tokens", "List tokens", TokenList, (403, 409))
def list_tokens(context: Ctx, issued: Issued) -> Response:
    """The tokens that this server has made, by name. None of their texts: the server doesn't know them. Only admins
    may (403)."""
    context.operators.check(CURRENT.get().name)
    return json_answer(TokenList(items=[Token(**_shown(each)) for each in issued.all()]))


@router.operation(
    "PUT /tokens/{name}", "Make a token", NewToken, (400, 403, 404, 409), "It is valid from now on.", status=201
)
def create_token(name: Name, context: Ctx, issued: Issued, wish: TokenRequest | None = None) -> Response:
    """Make a token for a person or a service, durably. The answer has its text, which is shown this once. Only admins
    may (403)."""
    context.operators.check(CURRENT.get().name)
    wish = wish or TokenRequest()
    token, text = issued.create(
        name, _with_lesser(wish.scopes), created_by=CURRENT.get().name, days=wish.days, replaces=wish.replace
    )
    return json_answer(NewToken(**_shown(token), token=text), 201)


@router.operation(
    "DELETE /tokens/{name}",
    "Revoke a token",
    None,
    (403, 404, 409),
    "It is not valid any more. What was made with it stays.",
)
def revoke_token(name: Name, context: Ctx, issued: Issued) -> Response:
    """Let nobody in with this token any more, nor with what was made of it: sessions of browsers and signed URLs. Other
    servers of the cluster see that within seconds. Only admins may (403)."""
    context.operators.check(CURRENT.get().name)
    issued.revoke(name)
    return no_content()


def _with_lesser(scopes: list[Scope]) -> tuple[Scope, ...]:
    """Scopes with those that they include: whoever may change may see."""
    return SCOPES[: max(SCOPES.index(scope) for scope in scopes) + 1]


def _shown(token: IssuedToken) -> dict[str, Any]:
    return {
        "name": token.name,
        "scopes": list(token.scopes),
        "created": rfc3339(token.created),
        "created_by": token.created_by,
        "expires": rfc3339(token.expires) if token.expires else None,
        "is_valid": token.is_valid(time.time()),
    }
