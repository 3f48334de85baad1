"""The status of each mini-batch, and the items that have failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from fastapi import Path, Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PageToken, clamped
from parallelrun_api.people.person import seen_places
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId, content
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.failed_items import FailedItemFilter, failed_items
from parallelrun_api.views.input_content import content_of, place_of
from parallelrun_api.views.mini_batch_inputs import first_input_of, inputs_of
from parallelrun_api.views.mini_batches import MiniBatchOrder, Order, Page, Status, begun_tries, decided, ready, running
from parallelrun_core.answers.mini_batches import FailedItemPage, MiniBatchInputs, MiniBatchPage, MiniBatchTries
from parallelrun_core.errors import Conflict, InvalidInput, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.states import TERMINAL

router = Operations("jobs")

_MAX_ID: Final = 2**32 - 1
_MOST_INPUTS: Final = 50
"""Mini-batches of one page whose inputs are read."""


@router.operation(
    "GET /jobs/{job_id:job}/mini-batches", "List mini-batches", MiniBatchPage, (404, 409, 429), reads="mini_batches"
)
async def list_mini_batches(
    job_id: JobId,
    context: Ctx,
    *,
    status: Annotated[Status | None, Query(description="By default the decided ones: done and failed.")] = None,
    order_by: Annotated[
        Order, Query(description="Of decided ones: as they were decided, by id, or the slowest first.")
    ] = "decided",
    first: Annotated[int, Query(ge=0, le=_MAX_ID, description="With another order: only those from this id on.")] = 0,
    end: Annotated[int | None, Query(ge=0, le=_MAX_ID, description="With another order: only those before it.")] = None,
    inputs: Annotated[
        bool, Query(description="With another order: the first input of each, too; then at most 50 are in a page.")
    ] = False,
    node: Annotated[str, Query(max_length=200, description="With another order: only those decided there.")] = "",
    process: Annotated[str, Query(max_length=200, description="With another order: only those of such workers.")] = "",
    category: Annotated[
        str, Query(max_length=50, description="With another order: only those that failed with such an error.")
    ] = "",
    input_name: Annotated[
        str,
        Query(alias="input", max_length=500, description="By id: only those with this in the name of a file."),
    ] = "",
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
) -> Response:
    """A job's mini-batches: decided ones in the order of their decisions, `running` and `ready` ones as they are now. A
    page may have fewer items than `limit`; the last one has no `next_page_token`. A pipeline has none (409): its steps
    have."""
    filters = {"node": node, "process": process, "category": category, "input_name": input_name}
    _check_order(order_by, filters)
    page = Page(limit=clamped(limit), token=page_token)
    if order_by == "decided":
        key = (list_mini_batches, job_id, status, page)
        return await context.long_lists.answer(key, lambda: _page_as_decided(context, job_id, status, page))
    page = replace(page, limit=min(page.limit, _MOST_INPUTS)) if inputs else page
    order = MiniBatchOrder(order_by=order_by, first=first, end=end, has_inputs=inputs, **filters)
    ordered_key = (list_mini_batches, job_id, status, order, page)
    return await context.pictures.answer(ordered_key, lambda: _page_in_order(context, job_id, status, order, page))


@router.operation(
    "GET /jobs/{job_id:job}/failed-items", "List failed items", FailedItemPage, (404, 409, 429), reads="mini_batches"
)
async def list_failed_items(
    job_id: JobId,
    context: Ctx,
    *,
    mini_batch: Annotated[int | None, Query(ge=0, le=_MAX_ID, description="Only those of this mini-batch.")] = None,
    category: Annotated[str, Query(max_length=50, description="Only those of this category.")] = "",
    text: Annotated[str, Query(max_length=200, description="Only those with this in their name or message.")] = "",
    limit: Limit = DEFAULT_LIMIT,
    page_token: PageToken = "",
) -> Response:
    """A job's items that have failed for good, each with the reason, in the order of the mini-batches. They are listed
    once the job has ended. A pipeline has none (409): its steps have."""
    only = FailedItemFilter(mini_batch=mini_batch, category=category, text=text)
    page = Page(limit=clamped(limit), token=page_token)
    key = (list_failed_items, job_id, only, page)
    return await context.long_lists.answer(key, lambda: _failed_items(context, job_id, only, page))


@router.operation(
    "GET /jobs/{job_id:job}/mini-batches/{mini_batch}",
    "Show a mini-batch",
    MiniBatchTries,
    (404, 409, 429),
    reads="mini_batches",
)
async def show_mini_batch(
    job_id: JobId, context: Ctx, mini_batch: Annotated[int, Path(ge=0, le=_MAX_ID, description="Its id.")]
) -> Response:
    """Return one mini-batch with all of its tries, and the logs of the workers that have tried it."""
    key = (show_mini_batch, job_id, mini_batch)
    return await context.pictures.answer(key, lambda: _tries(context, job_id, mini_batch))


@router.operation(
    "GET /jobs/{job_id:job}/mini-batches/{mini_batch}/inputs",
    "List the inputs of a mini-batch",
    MiniBatchInputs,
    (404, 409, 429),
    reads="mini_batches",
)
async def show_inputs(
    job_id: JobId, context: Ctx, mini_batch: Annotated[int, Path(ge=0, le=_MAX_ID, description="Its id.")]
) -> Response:
    """Return the files, or the ranges of tables, that a mini-batch consists of."""
    key = (show_inputs, job_id, mini_batch)
    return await context.long_lists.answer(key, lambda: _inputs(context, job_id, mini_batch))


@router.operation(
    "GET /jobs/{job_id:job}/mini-batches/{mini_batch}/inputs/{number}",
    "Read the beginning of an input",
    None,
    (404, 409),
    others=content("application/octet-stream", "Its first bytes, or all of a picture."),
    reads="mini_batches",
)
def read_input(
    job_id: JobId,
    context: Ctx,
    mini_batch: Annotated[int, Path(ge=0, le=_MAX_ID, description="Its id.")],
    number: Annotated[int, Path(ge=0, le=_MAX_ID, description="Of the input, from 0: files, then ranges of tables.")],
) -> Response:
    """Return the first 16 KiB of an input of a mini-batch as it is now, those of a range of a text from its begin on; a
    picture of up to 10 MiB (PNG, JPEG, GIF, WebP, BMP) is returned whole and has its media type. Inputs in object
    stores are not read, since the server has no credentials for them (404)."""
    folder, _ = _folder_of(context, job_id)
    rule = PathRule(context.settings.root, seen_places(context.settings.places), job_id)
    head = content_of(place_of(folder.path, mini_batch, number), rule)
    headers = {
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(head.name, safe='')}",
    }
    return Response(head.content, media_type=head.media_type, headers=headers)


def _check_order(order_by: Order, filters: Mapping[str, str]) -> None:
    """Refuse filters that would be ignored."""
    if order_by == "decided" and any(filters.values()):
        raise InvalidInput.at("/query/order_by", "mini-batches are filtered only when they are ordered", "as in id")
    if order_by == "slowest" and filters["input_name"]:
        raise InvalidInput.at("/query/input", "names of inputs are searched by id", "order_by=id")


def _page_as_decided(context: Context, job_id: str, status: Status | None, page: Page) -> MiniBatchPage:
    folder, record = _folder_of(context, job_id)
    match status:
        case "running":
            return running(context.job_views, job_id, page)
        case "ready":
            return ready(context.job_views, job_id, page)
        case _:
            return decided(folder.path, Mask(record.spec), status, page)


def _page_in_order(
    context: Context, job_id: str, status: Status | None, order: MiniBatchOrder, page: Page
) -> MiniBatchPage:
    """A page of decided mini-batches, in an order for which all of them must be known."""
    from parallelrun_api.tries.mini_batches import page as page_of

    match status:
        case "running" | "ready":
            raise InvalidInput.at("/query/order_by", f"mini-batches that are {status} have an order of their own")
    folder, _ = _folder_of(context, job_id)
    history = context.histories.of(folder)
    with history.lock:
        answer = page_of(history, order, status, page)
    if not order.has_inputs:
        return answer
    items = [msgspec.structs.replace(each, first_input=first_input_of(folder.path, each.id)) for each in answer.items]
    return msgspec.structs.replace(answer, items=items)


def _failed_items(context: Context, job_id: str, only: FailedItemFilter, page: Page) -> FailedItemPage:
    _folder_of(context, job_id)
    progress = context.jobs.get(job_id).progress
    logs, total = logs_of(context, job_id), progress.items_failed - progress.items_short
    return failed_items(logs, only, limit=page.limit, token=page.token, total=total)


def _tries(context: Context, job_id: str, mini_batch: int) -> MiniBatchTries:
    from parallelrun_api.tries.mini_batches import now_of, status_of, tries_of
    from parallelrun_api.tries.timeline import median_run_s

    folder, _ = _folder_of(context, job_id)
    job = context.jobs.get(job_id)
    history = context.histories.of(folder)
    is_over = job.state in TERMINAL
    running_tries = {} if is_over else context.job_views.running(job_id)
    begun = None if is_over else begun_tries(context.job_views.at_work(job_id)).get(mini_batch)
    with history.lock:
        total = max(job.progress.scheduled, history.decided_by.end)
        if mini_batch >= total:
            raise NotFound(f"Job {job_id} has no mini-batch {mini_batch:,}: there are {total:,} so far.")
        return MiniBatchTries(
            id=mini_batch,
            status=status_of(history, mini_batch) or ("running" if mini_batch in running_tries else "ready"),
            node=running_tries.get(mini_batch),
            now=begun and now_of(history, begun),
            median_run_s=median_run_s(history),
            tries=tries_of(history, mini_batch),
            read_share=history.read_share,
        )


def _inputs(context: Context, job_id: str, mini_batch: int) -> MiniBatchInputs:
    folder, _ = _folder_of(context, job_id)
    return inputs_of(folder.path, mini_batch)


def _folder_of(context: Context, job_id: str) -> tuple[JobFolder, JobRecord]:
    """The folder and the record of a job that has mini-batches.

    Raises:
        NotFound: there is no such job.
        Conflict: it is a pipeline.
    """
    folder = context.jobs.folder(job_id)
    record = folder.record()
    if record.is_pipeline:
        raise Conflict(f"Job {job_id} is a pipeline: ask for the mini-batches of the job of one of its `steps`.")
    return folder, record
