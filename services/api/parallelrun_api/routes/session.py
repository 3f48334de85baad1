"""Sign a browser in and out."""

from __future__ import annotations

from typing import Annotated, Any, Final, cast

from fastapi import Depends, Request, Response
from pydantic import Field

from parallelrun_api.http.answers import json_answer
from parallelrun_api.http.sessions import Sessions
from parallelrun_api.http.token import Token
from parallelrun_api.models import RequestModel
from parallelrun_api.people.person import SCOPES
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.people import Session, SignInCode
from parallelrun_core.errors import Unauthorized

router = Operations("session", about="Sign a browser in and out.", is_open=True)

PATH: Final = "/v1/session"
_OPEN: Final[dict[str, Any]] = {"security": []}


def _sessions_of(request: Request) -> Sessions:
    return cast(Sessions, request.app.state.sessions)


Ours = Annotated[Sessions, Depends(_sessions_of)]


class SignIn(RequestModel):
    """The credentials of a browser that signs in: one of the two."""

    token: str = Field(default="", max_length=4096)
    """The token of the server, or one of those that have a name."""
    code: str = Field(default="", max_length=200)
    """A code of `POST /v1/session:code`."""


@router.operation("GET /session", "Is this browser signed in?", Session, openapi_extra=_OPEN)
def show_session(request: Request, sessions: Ours) -> Response:
    """Return whether this browser is signed in, and until when. Needs no token."""
    signed_in = sessions.of(_headers(request))
    is_needed = sessions.token.is_needed
    proxies = sessions.token.proxies
    by_proxy = proxies.name_of(request.scope.get("client"), _headers(request)) if proxies is not None else ""
    name = by_proxy or (signed_in.token_name if signed_in is not None else "")
    is_signed_in = bool(by_proxy) or signed_in is not None or not is_needed
    return json_answer(
        Session(
            **_rights(sessions, name, is_signed_in=is_signed_in),
            is_signed_in=is_signed_in,
            token_name=name,
            is_token_needed=is_needed,
            ends=rfc3339(signed_in.ends) if signed_in is not None and is_needed and not by_proxy else None,
        )
    )


@router.operation(
    "POST /session",
    "Sign in",
    Session,
    (400, 403, 409),
    others={200: {"headers": {"Set-Cookie": {"description": "The session.", "schema": {"type": "string"}}}}},
    openapi_extra=_OPEN,
)
def sign_in(request: Request, sessions: Ours, credentials: SignIn) -> Response:
    """Sign a browser in: the answer sets a cookie that stands for the token for twelve hours, and that no script can
    read. A request with the cookie that changes something needs the header `X-ParallelRun-Page`, with any value.

    A code is for the browser that shows it first, which may show it again. A browser that is signed in with another
    token stays so (409)."""
    headers = _headers(request)
    if sessions.token.is_needed and credentials.code:
        session, cookie = sessions.redeemed(credentials.code, headers)
    else:
        name = sessions.token.name_of(credentials.token.strip().encode()) or "" if sessions.token.is_needed else ""
        if sessions.token.is_needed and not name:
            raise Unauthorized(_not_ours(sessions.token, credentials.token))
        sessions.ended(headers)
        session, cookie = sessions.new_cookie(name, headers)
    request.scope["state"]["token_name"] = session.token_name
    answer = Session(
        **_rights(sessions, session.token_name, is_signed_in=True),
        is_signed_in=True,
        token_name=session.token_name,
        is_token_needed=sessions.token.is_needed,
        ends=rfc3339(session.ends) if sessions.token.is_needed else None,
    )
    return json_answer(answer, headers={"Set-Cookie": cookie} if cookie else {})


@router.operation("DELETE /session", "Sign out", None, (403,), openapi_extra=_OPEN)
def sign_out(request: Request, sessions: Ours) -> Response:
    """End the session of this browser, on all servers and for good, and remove its cookie. Needs no token."""
    return Response(status_code=204, headers={"Set-Cookie": sessions.ended(_headers(request))})


@router.operation("POST /session:code", "Make a link that signs in", SignInCode, (403,))
def make_sign_in_code(request: Request, sessions: Ours) -> Response:
    """A code that signs in one browser, once, within ten minutes, with the token of this request. The `link` hands it
    over in the part of an address that browsers send to nobody. Asked for with a cookie, the new session ends
    with that one."""
    code, ends = sessions.new_code(request.scope["state"].get("token_name", ""), _headers(request))
    return json_answer(SignInCode(code=code, ends=rfc3339(ends), link=f"/#code={code}"))


def _rights(sessions: Sessions, name: str, *, is_signed_in: bool) -> dict[str, Any]:
    """The fields of a session that say what its token allows."""
    token = sessions.token
    person_of = token.person_of if token.proxies is None else token.person_from_proxy
    scopes = person_of(name).scopes if is_signed_in else frozenset()
    return {"scopes": [scope for scope in SCOPES if scope in scopes], "has_people": sessions.token.has_people}


def _headers(request: Request) -> dict[bytes, bytes]:
    return dict(request.scope["headers"])


def _not_ours(token: Token, presented: str) -> str:
    """Return why no browser can be signed in with this text."""
    if token.oidc is not None and presented.count(".") == 2:  # of a JWT
        return (
            "A token of an OpenID Connect provider, which is valid for minutes, signs no browser in: use the page "
            "behind a proxy that people sign in at (docs/people.md)."
        )
    return "This is not a token of this server."
