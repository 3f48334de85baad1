"""Use of the cluster by its people."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.people.person import CURRENT
from parallelrun_api.routes.responses import content
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.people import UsageList, UsageOfWeek
from parallelrun_core.untrusted.sanitize import csv_cell

router = Operations("tokens")

_CSV: Final = "text/csv; charset=utf-8"
_HOUR_S: Final = 3600.0
_COLUMNS: Final = "week,owner,slot_hours,gpu_hours,cost,job_bytes,week_bytes"


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
