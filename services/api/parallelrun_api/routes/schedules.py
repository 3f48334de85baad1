"""Jobs that are made again and again, when they are due."""

from __future__ import annotations

from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import Path, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PageToken, page_answer
from parallelrun_api.people.person import CURRENT
from parallelrun_api.routes.responses import created, document_body, zip_form
from parallelrun_api.routes.router import Operations
from parallelrun_api.routes.submitting import IdempotencyKey, accepted, document_and_files
from parallelrun_api.views import schedules as views
from parallelrun_core.answers.jobs import Job
from parallelrun_core.answers.schedules import FirePage, Schedule, SchedulePage
from parallelrun_core.layout import code_store
from parallelrun_core.names.patterns import PLAIN_NAME
from parallelrun_core.schedules.triggers import kinds

router = Operations("schedules", about="Jobs that are made when they are due.")

_EXAMPLE_YAML: Final = """\
trigger: {type: cron, expression: "30 2 * * *", time_zone: Europe/Berlin}
create_job:
  entry_script: digits.py
  code: /srv/digits/code
  inputs: {images: /srv/digits/images}
  mini_batch_size: 50
"""
_TRIGGERS: Final = f"{' or '.join(f'`type: {kind}`' for kind in kinds())}."
_DOCUMENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "As Azure ML's YAML of a schedule; see docs/schedules.md. `name` may be left out.",
    "required": ["trigger", "create_job"],
    "properties": {
        "trigger": {"type": "object", "description": _TRIGGERS},
        "create_job": {"description": "A job, or `azureml:JOB` for one that there is."},
        "missed_runs": {"enum": ["once", "skip"], "default": "once"},
        "allow_overlap": {"type": "boolean", "default": False},
    },
}
_BODY: Final = document_body(
    _DOCUMENT,
    "A document, or a form of a document and a zip of its job's code.",
    example=("nightly", _EXAMPLE_YAML),
    form=zip_form("code", "A document, whose job has no `code`.", "A zip of the folder with the entry script."),
)
Name = Annotated[str, Path(description="Name of a schedule.", pattern=PLAIN_NAME, examples=["nightly"])]


@router.operation("GET /schedules", "List schedules", SchedulePage, (429,))
async def list_schedules(context: Ctx, limit: Limit = DEFAULT_LIMIT, page_token: PageToken = "") -> Response:
    """All schedules, by name."""
    only = CURRENT.get().only_owner
    return await page_answer(
        context.job_lists,
        SchedulePage,
        ("schedules", only),
        lambda after, most: views.page(context.schedules.store, after=after, limit=most, owner=only),
        limit=limit,
        page_token=page_token,
    )


@router.operation("GET /schedules/{schedule:job}", "Get a schedule", Schedule, (404,))
def get_schedule(schedule: Name, context: Ctx) -> Response:
    """Return one schedule, with the times at which it is due next."""
    store = context.schedules.store
    return json_answer(views.schedule(store, schedule, store.get(schedule)))


@router.operation(
    "PUT /schedules/{schedule:job}",
    "Define a schedule",
    Schedule,
    (400, 403, 404, 409, 413, 415),
    "It is defined anew. Its history stays, and whether it is enabled.",
    others=created(Schedule),
    openapi_extra=_BODY,
)
async def put_schedule(schedule: Name, request: Request, context: Ctx) -> Response:
    """Define a schedule, durably. Its job is checked, and a copy of its code kept, as when a job is submitted; each job
    that it makes is that job. What was due before this is not made up."""
    async with document_and_files(request, context, code_store(context.settings.root)) as (document, code):
        revision, is_new = await run_sync(context.schedules.put, schedule, document, code)
    defined = await run_sync(views.schedule, context.schedules.store, schedule, revision)
    return json_answer(defined, 201 if is_new else 200)


@router.operation(
    "DELETE /schedules/{schedule:job}",
    "Delete a schedule",
    None,
    (403, 404),
    "It is gone, with its history. Its jobs stay.",
)
def delete_schedule(schedule: Name, context: Ctx) -> Response:
    """Forget a schedule. Jobs that it has made go on."""
    context.schedules.remove(schedule)
    return no_content()


@router.operation("POST /schedules/{schedule:job}:enable", "Enable a schedule", Schedule, (403, 404, 409))
def enable_schedule(schedule: Name, context: Ctx) -> Response:
    """Make a schedule's jobs from now on when they are due. What was due meanwhile is not made up."""
    revision = context.schedules.enable(schedule, is_enabled=True)
    return json_answer(views.schedule(context.schedules.store, schedule, revision))


@router.operation("POST /schedules/{schedule:job}:disable", "Disable a schedule", Schedule, (403, 404, 409))
def disable_schedule(schedule: Name, context: Ctx) -> Response:
    """Make no more jobs until it is enabled again. Those that it has made go on."""
    revision = context.schedules.enable(schedule, is_enabled=False)
    return json_answer(views.schedule(context.schedules.store, schedule, revision))


@router.operation(
    "POST /schedules/{schedule:job}:trigger",
    "Make a job of a schedule now",
    Job,
    (403, 404, 409, 429),
    "The job is accepted, durably.",
    status=202,
)
async def trigger_schedule(
    schedule: Name,
    context: Ctx,
    key: IdempotencyKey,
) -> Response:
    """Make one job now, also of a schedule that is disabled, and also while an earlier one runs."""
    return await accepted(context, key, lambda key: context.schedules.make_now(schedule, key))


@router.operation("GET /schedules/{schedule:job}/history", "Get the history of a schedule", FirePage, (404, 429))
async def list_fires(
    schedule: Name, context: Ctx, limit: Limit = DEFAULT_LIMIT, page_token: PageToken = ""
) -> Response:
    """Return what became of the times at which it was due, the latest first. The last thousand are remembered."""
    return await page_answer(
        context.job_lists,
        FirePage,
        ("history", schedule),
        lambda before, most: views.history(context.schedules.store, schedule, before=before, limit=most),
        limit=limit,
        page_token=page_token,
    )
