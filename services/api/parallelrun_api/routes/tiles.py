"""A job in pictures: mini-batches in buckets, workers in time, throughput, kinds of errors, key figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from anyio.to_thread import run_sync
from fastapi import Query, Request, Response
from msgspec import Struct

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import conditional_answer, prepared
from parallelrun_api.http.paging import PageToken, decode_numbers, encode_token
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.failed_items import kinds_of_errors
from parallelrun_api.views.presenters import epoch
from parallelrun_api.views.settings import effective_settings
from parallelrun_core.answers.pictures import (
    Compared,
    Comparison,
    EffectiveSettings,
    Figures,
    KindsOfErrors,
    SettingOfTwo,
    Throughput,
    Tiles,
    Timeline,
)
from parallelrun_core.errors import Conflict
from parallelrun_core.names.patterns import JOB
from parallelrun_core.wire.states import TERMINAL

if TYPE_CHECKING:
    from parallelrun_core.answers.jobs import Job
    from parallelrun_core.tries.history import History

# What is in `parallelrun_api.tries` is imported when somebody asks: numpy would delay the start of each server.

router = Operations("jobs")

_MOST: Final = 2**32 - 1
_SEEN: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "Nothing has changed."}}
_LANES: Final = "lanes"


@router.operation(
    "GET /jobs/{job_id:job}/tiles",
    "Show mini-batches as a picture",
    Tiles,
    (404, 409, 429),
    others=_SEEN,
    reads="pictures",
)
async def show_tiles(
    request: Request,
    job_id: JobId,
    context: Ctx,
    *,
    first: Annotated[int, Query(ge=0, le=_MOST, description="The first mini-batch.")] = 0,
    end: Annotated[int | None, Query(ge=0, le=_MOST, description="The one after the last; by default, all.")] = None,
    buckets: Annotated[int, Query(ge=1, le=2048, description="At most so many of them.")] = 512,
) -> Response:
    """Mini-batches in buckets of neighbors: how many are in which state, and how long they took. To look closer at a
    bucket, ask with its bounds. Works for any number of mini-batches, while the job runs and after it."""

    def answer() -> Tiles:
        from parallelrun_api.tries.tiles import tiles

        job, history = _looked_at(context, job_id)
        is_over = job.state in TERMINAL
        running = {} if is_over else context.job_views.running(job_id)
        with history.lock:
            return tiles(history, job.progress, running, first=first, end=end, buckets=buckets)

    return await _answered(request, context, (show_tiles, job_id, first, end, buckets), answer)


@router.operation(
    "GET /jobs/{job_id:job}/timeline", "Show workers in time", Timeline, (404, 409, 429), others=_SEEN, reads="pictures"
)
async def show_timeline(
    request: Request,
    job_id: JobId,
    context: Ctx,
    *,
    begin_s: Annotated[float, Query(ge=0, le=1e10, description="Seconds since the start of the timeline.")] = 0.0,
    end_s: Annotated[float | None, Query(ge=0, le=1e10, description="By default, all that there is.")] = None,
    buckets: Annotated[int, Query(ge=1, le=1000, description="So many of them.")] = 200,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of lanes.")] = 50,
    page_token: PageToken = "",
) -> Response:
    """A lane for each worker: in each bucket of time, the seconds that it was in `init()`, loading and running; each
    try by itself if there are few; what each worker of a running job does now; and the slowest tries of the window."""
    skip = decode_numbers(page_token, _LANES, 1)[0] if page_token else 0

    def answer() -> Timeline:
        from parallelrun_api.tries.timeline import NOBODY, LiveWorkers, TimeWindow, timeline

        job, history = _looked_at(context, job_id)
        live = NOBODY
        if job.state not in TERMINAL:
            live = LiveWorkers(nodes=context.job_views.at_work(job_id), now=time.time())
        window = TimeWindow(begin_s=begin_s, end_s=end_s, buckets=buckets, skip=skip, lanes=limit)
        with history.lock:
            view = timeline(history, window, live)
        more = skip + limit < view.lanes_total
        return msgspec.structs.replace(view, next_page_token=encode_token(_LANES, skip + limit) if more else None)

    return await _answered(request, context, (show_timeline, job_id, begin_s, end_s, buckets, limit, skip), answer)


@router.operation(
    "GET /jobs/{job_id:job}/throughput",
    "Show what was done in time",
    Throughput,
    (404, 409, 429),
    others=_SEEN,
    reads="pictures",
)
async def show_throughput(
    request: Request,
    job_id: JobId,
    context: Ctx,
    *,
    points: Annotated[int, Query(ge=1, le=500, description="At most so many buckets.")] = 200,
    least_items: Annotated[
        int,
        Query(ge=0, le=10_000, description="Buckets have so many items on average: rates of fewer are chance."),
    ] = 0,
) -> Response:
    """Mini-batches and items that were decided, tries that failed, and busy workers, from the start until now."""

    def answer() -> Throughput:
        from parallelrun_api.tries.throughput import throughput

        _, history = _looked_at(context, job_id)
        with history.lock:
            return throughput(history, points, least_items=least_items)

    return await _answered(request, context, (show_throughput, job_id, points, least_items), answer)


@router.operation(
    "GET /jobs/{job_id:job}/errors",
    "Show what has failed, by kind",
    KindsOfErrors,
    (404, 409, 429),
    others=_SEEN,
    reads="pictures",
)
async def show_errors(request: Request, job_id: JobId, context: Ctx) -> Response:
    """Tries that failed in the same way, the most frequent way first, each with its first mini-batches and its log.
    Tries that were followed by another one are among them."""

    def answer() -> KindsOfErrors:
        _, history = _looked_at(context, job_id)
        with history.lock:
            return kinds_of_errors(history)

    return await _answered(request, context, (show_errors, job_id), answer)


@router.operation(
    "GET /jobs/{job_id:job}/figures", "Show key figures", Figures, (404, 409, 429), others=_SEEN, reads="pictures"
)
async def show_figures(request: Request, job_id: JobId, context: Ctx) -> Response:
    """Return how long the job and its tries took, and how well its workers were used."""
    return await _answered(request, context, (show_figures, job_id), lambda: _figures(context, job_id)[1])


@router.operation(
    "GET /jobs/{job_id:job}/comparison", "Compare two jobs", Comparison, (404, 409, 429), others=_SEEN, reads="pictures"
)
async def compare_jobs(
    request: Request,
    job_id: JobId,
    context: Ctx,
    *,
    other: Annotated[str, Query(description="The id of the other job.", pattern=JOB)],
) -> Response:
    """Two jobs side by side: their key figures, and the settings in which they differ."""
    ids = (job_id, other)
    await run_sync(context.access.check_job_seen, other)

    def answer() -> Comparison:
        jobs = []
        for each in ids:
            job, figures = _figures(context, each)
            jobs.append(Compared(id=each, name=job.name, state=job.state, figures=figures))
        one, two = (_values(context, each) for each in ids)
        return Comparison(
            jobs=jobs,
            settings=[
                SettingOfTwo(name=name, values=[one.get(name), two.get(name)])
                for name in dict.fromkeys((*one, *two))
                if one.get(name) != two.get(name)
            ],
        )

    return await _answered(request, context, (compare_jobs, *ids), answer)


@router.operation("GET /jobs/{job_id:job}/settings", "Show settings", EffectiveSettings, (404, 429), others=_SEEN)
async def show_settings(request: Request, job_id: JobId, context: Ctx) -> Response:
    """Each setting of a job: the value that counts, the default, and where it was given."""
    return await _answered(
        request,
        context,
        (show_settings, job_id),
        lambda: effective_settings(context.jobs.folder(job_id).record()),
    )


def _looked_at(context: Context, job_id: str) -> tuple[Job, History]:
    """A job that has mini-batches, and its history."""
    # In this order: what was recorded before it was seen as ended is then read.
    job = context.jobs.get(job_id)
    if job.type == "pipeline":
        raise Conflict(f"Job {job_id} is a pipeline: ask for the job of one of its `steps`.")
    return job, context.histories.of(context.jobs.folder(job_id))


def _figures(context: Context, job_id: str) -> tuple[Job, Figures]:
    from parallelrun_api.tries.throughput import figures

    job, history = _looked_at(context, job_id)
    started, ended = (epoch(each) if each else None for each in (job.started, job.ended))
    # Without its fraction: so nothing changes in between for those who ask every second.
    until = ended if ended is not None else float(int(time.time()))
    with history.lock:
        return job, figures(history, job.progress, started=started, until=until)


def _values(context: Context, job_id: str) -> dict[str, object]:
    return {item.name: item.value for item in effective_settings(context.jobs.folder(job_id).record()).items}


async def _answered(request: Request, context: Context, key: Hashable, answer: Callable[[], Struct]) -> Response:
    prepared_answer = await context.pictures.run(key, lambda: prepared(answer()))
    return conditional_answer(request.headers, prepared_answer)
