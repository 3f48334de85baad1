"""People and services: their tokens, their quotas, and their use of the cluster."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final, cast

from fastapi import Depends, Path, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.http.token import Token as ServerToken
from parallelrun_api.models import QuotaRequest, TokenRequest
from parallelrun_api.people.issued import IssuedToken, IssuedTokens
from parallelrun_api.people.person import CURRENT, SCOPES, Scope
from parallelrun_api.routes.responses import content
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.people import NewToken, Quota, QuotaList, Token, TokenList, UsageList, UsageOfWeek
from parallelrun_core.errors import Conflict
from parallelrun_core.names.patterns import OWNER_NAME
from parallelrun_core.store.slot_quotas import EVERYBODY
from parallelrun_core.untrusted.sanitize import csv_cell

router = Operations("tokens", about="Who may use this server, and for what.")

_NO_KEY: Final = (
    "This server can't make tokens: give it a token of its own (--token-file), or a key that seals them "
    "(--computes-key-file)."
)
_NOT_NEEDED: Final = "This server requires no token (--insecure), so it makes none."
OwnerName = Annotated[str, Path(description="An owner, or `everybody`.", pattern=OWNER_NAME, examples=["anna"])]
_CSV: Final = "text/csv; charset=utf-8"
_HOUR_S: Final = 3600.0
_COLUMNS: Final = "week,owner,slot_hours,gpu_hours,cost,job_bytes,week_bytes"


def _issued_of(request: Request) -> IssuedTokens:
    token = cast("ServerToken", request.app.state.token)
    if token.issued is None:
        raise Conflict(_NO_KEY if token.is_needed else _NOT_NEEDED)
    return token.issued


Issued = Annotated[IssuedTokens, Depends(_issued_of)]
Name = Annotated[str, Path(description="Name of a token.", pattern=OWNER_NAME, examples=["anna"])]


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


@router.operation("GET /quotas", "List quotas", QuotaList)
def list_quotas(context: Ctx) -> Response:
    """All quotas, by name. Where people see only what is their own, only theirs and that of everybody."""
    person, quotas = CURRENT.get(), context.quotas.documents
    names = [name for name in quotas.names() if name == EVERYBODY or person.may_see(name)]
    return json_answer(QuotaList(items=[quotas.get(name) for name in names]))


@router.operation("PUT /quotas/{name}", "Set a quota", Quota, (400, 403, 404), "It holds from the next submission on.")
def put_quota(name: OwnerName, context: Ctx, wish: QuotaRequest) -> Response:
    """Set the whole quota of a person, or of everybody who has none of their own, durably. Only admins may (403)."""
    context.operators.check(CURRENT.get().name)
    quota = Quota(name=name, **wish.model_dump())
    context.quotas.define(quota)
    return json_answer(quota)


@router.operation(
    "PATCH /quotas/{name}", "Change a quota", Quota, (400, 403, 404, 409), "It holds from the next submission on."
)
def patch_quota(name: OwnerName, context: Ctx, wish: QuotaRequest) -> Response:
    """Set the limits that are named, and keep the others (null: there is none any more), durably. Only admins may.

    Somebody who has no quota gets one, of these limits alone.
    """
    context.operators.check(CURRENT.get().name)
    return json_answer(context.quotas.change(name, wish.model_dump(exclude_unset=True)))


@router.operation(
    "DELETE /quotas/{name}", "Remove a quota", None, (403, 404), "It is gone: that of everybody holds, if there is one."
)
def delete_quota(name: OwnerName, context: Ctx) -> Response:
    """Forget a quota. Only admins may (403)."""
    context.operators.check(CURRENT.get().name)
    context.quotas.remove(name)
    return no_content()


@router.operation("GET /usage", "Get the use of the cluster", UsageList)
def get_usage(context: Ctx) -> Response:
    """The use of slots and GPUs by week and person, the latest week first, since the first job that had an owner. Where
    people see only what is their own, only theirs."""
    return json_answer(UsageList(items=_usage(context)))


@router.operation(
    "GET /usage.csv",
    "Get the use of the cluster as CSV",
    None,
    others=content("text/csv", "A line for each week and person."),
)
def get_usage_csv(context: Ctx) -> Response:
    """Return the same for a spreadsheet."""
    lines = [_COLUMNS]
    for each in _usage(context):
        hours = f"{each.slot_hours},{each.gpu_hours},{each.cost}"
        job_bytes = "" if each.job_bytes is None else each.job_bytes
        lines.append(f"{each.week},{csv_cell(each.owner)},{hours},{job_bytes},{each.week_bytes}")
    return Response("\n".join([*lines, ""]), headers={"Cache-Control": "no-store"}, media_type=_CSV)


def _usage(context: Ctx) -> list[UsageOfWeek]:
    person, settings = CURRENT.get(), context.settings
    items: list[UsageOfWeek] = []
    sizes, by_week = context.quotas.sizes(), context.quotas.sizes_by_week()
    for week, owner, used in context.usage.weeks():
        if person.may_see(owner):
            slot_hours, gpu_hours = used.slot_s / _HOUR_S, used.gpu_s / _HOUR_S
            cost = slot_hours * settings.cost_per_slot_hour + gpu_hours * settings.cost_per_gpu_hour
            items.append(
                UsageOfWeek(
                    week=week,
                    owner=owner,
                    slot_hours=round(slot_hours, 4),
                    gpu_hours=round(gpu_hours, 4),
                    job_bytes=sizes.get(owner, 0) if not items or week == items[0].week else None,
                    week_bytes=by_week.get((week, owner), 0),
                    cost=round(cost, 4),
                )
            )
    return items
