"""Route of the explanation why a job, or one of its mini-batches, doesn't run now."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.people.person import CURRENT, Person
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.waiting.pipelines import explain_pipeline
from parallelrun_core.answers.waiting import Explanation
from parallelrun_core.errors import Conflict

router = Operations("jobs")

_MOST: Final = 2**32 - 1


@router.operation(
    "GET /jobs/{job_id:job}/explanation", "Explain why a job doesn't run now", Explanation, (404, 409, 429)
)
async def explain(
    job_id: JobId,
    context: Ctx,
    mini_batch: Annotated[
        int | None, Query(ge=0, le=_MOST, description="The id of a mini-batch; by default, the job as a whole.")
    ] = None,
) -> Response:
    """Return each condition that the job, or the mini-batch, must meet to run, its state, and what to do about the
    first one that isn't met. Names of other people's jobs are only told to those who may see them."""
    viewer = CURRENT.get()
    key = (explain, job_id, mini_batch, viewer)
    return await context.pictures.answer(key, lambda: _explained(context, job_id, mini_batch, viewer))


def _explained(context: Context, job_id: str, mini_batch: int | None, viewer: Person) -> Explanation:
    folder = context.jobs.folder(job_id)
    record = folder.record()
    if record.is_pipeline:
        if mini_batch is not None:
            raise Conflict(f"Job {job_id} is a pipeline: ask for a mini-batch of the job of one of its `steps`.")
        return explain_pipeline(context.jobs.get(job_id), context.waits.explain(folder, viewer))
    if mini_batch is None:
        return context.waits.explain(folder, viewer)
    decided = _decided(context, job_id, mini_batch)
    return decided or context.waits.explain_mini_batch(folder, mini_batch, viewer)


def _decided(context: Context, job_id: str, mini_batch: int) -> Explanation | None:
    """Return the explanation of a mini-batch that is decided; None: it isn't."""
    from parallelrun_api.tries.mini_batches import status_of

    history = context.histories.of(context.jobs.folder(job_id))
    with history.lock:
        status = status_of(history, mini_batch)
    if status is None:
        return None
    answer = f"it is {status} already"
    return Explanation(job=job_id, mini_batch=mini_batch, runs=False, answer=answer, conditions=[])
