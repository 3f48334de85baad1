"""Quotas of people."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.models import QuotaRequest
from parallelrun_api.people.issued import NAME_PATTERN
from parallelrun_api.people.person import CURRENT
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.people import Quota, QuotaList
from parallelrun_core.store.slot_quotas import EVERYBODY

router = Operations("tokens")

Name = Annotated[str, Path(description="An owner, or `everybody`.", pattern=NAME_PATTERN, examples=["anna"])]


@router.operation("GET /quotas", "List quotas", QuotaList)
def list_quotas(context: Ctx) -> Response:
    """All quotas, by name. Where people see only what is their own, only theirs and that of everybody."""
    person, quotas = CURRENT.get(), context.quotas.documents
    names = [name for name in quotas.names() if name == EVERYBODY or person.may_see(name)]
    return json_answer(QuotaList(items=[quotas.get(name) for name in names]))


@router.operation("PUT /quotas/{name}", "Set a quota", Quota, (400, 403, 404), "It holds from the next submission on.")
def put_quota(name: Name, context: Ctx, wish: QuotaRequest) -> Response:
    """Set the whole quota of a person, or of everybody who has none of their own, durably. Only admins may (403)."""
    context.operators.check(CURRENT.get().name)
    quota = Quota(name=name, **wish.model_dump())
    context.quotas.define(quota)
    return json_answer(quota)


@router.operation(
    "PATCH /quotas/{name}", "Change a quota", Quota, (400, 403, 404, 409), "It holds from the next submission on."
)
def patch_quota(name: Name, context: Ctx, wish: QuotaRequest) -> Response:
    """Set the limits that are named, and keep the others (null: there is none any more), durably. Only admins may.

    Somebody who has no quota gets one, of these limits alone.
    """
    context.operators.check(CURRENT.get().name)
    return json_answer(context.quotas.change(name, wish.model_dump(exclude_unset=True)))


@router.operation(
    "DELETE /quotas/{name}", "Remove a quota", None, (403, 404), "It is gone: that of everybody holds, if there is one."
)
def delete_quota(name: Name, context: Ctx) -> Response:
    """Forget a quota. Only admins may (403)."""
    context.operators.check(CURRENT.get().name)
    context.quotas.remove(name)
    return no_content()
