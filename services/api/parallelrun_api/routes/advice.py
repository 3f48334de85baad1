"""Routes of advice on a job, and of why it, or one of its mini-batches, doesn't run now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded_answer
from parallelrun_api.people.person import CURRENT, Person
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.advice import advice_on, curve_for
from parallelrun_api.waiting.pipelines import explain_pipeline
from parallelrun_core.adviser.advice import Advice, AdviceCurve
from parallelrun_core.adviser.asked import PATTERN
from parallelrun_core.adviser.kept import advice_question, curve_question, kept_answer
from parallelrun_core.answers.waiting import Explanation
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.job_folder import JobFolder

router = Operations("jobs")
_MAX_ID: Final = 2**32 - 1


@router.operation("GET /jobs/{job_id:job}/advice", "Advise on a job", Advice, (404, 409, 429))
async def show_advice(
    job_id: JobId,
    context: Ctx,
    min_saving_s: Annotated[
        float, Query(ge=0, le=1e9, description="Leave out what saves less time than this.", allow_inf_nan=False)
    ] = 60,
) -> Response:
    """Return what would make a job faster, cheaper or safer, with what was measured, what it would save, and what to
    change; also of a job that runs. It is computed from the records in the job's folder. A pipeline has none (409): its
    steps have."""
    key = (show_advice, job_id, min_saving_s)
    return encoded_answer(await context.long_lists.run(key, lambda: _advice(context, job_id, min_saving_s)))


@router.operation("GET /jobs/{job_id:job}/advice/what-if", "Compute other settings", AdviceCurve, (404, 409, 429))
async def show_what_if(
    job_id: JobId,
    context: Ctx,
    what_if: Annotated[
        str,
        Query(
            description="`nodes`, `processes` (on each node) or `mini_batch_size`, `=`, and a range or list of values.",
            max_length=1000,
            json_schema_extra={"pattern": PATTERN},
            examples=["nodes=1..64", "processes=2,4,8"],
        ),
    ],
    price: Annotated[
        float | None,
        Query(ge=0, le=1e9, description="Of a node for an hour, in any currency.", allow_inf_nan=False),
    ] = None,
) -> Response:
    """Return how long a job would have taken with other numbers of nodes or processes, or with mini-batches of other
    sizes: the measured times of its mini-batches, scheduled again. At most 64 points; of a wider range, as many as are
    spread evenly on a logarithmic scale."""
    key = (show_what_if, job_id, what_if, price)
    return encoded_answer(await context.long_lists.run(key, lambda: _curve(context, job_id, what_if, price)))


def _advice(context: Context, job_id: str, min_saving_s: float) -> str:
    return _kept(context, job_id, advice_question(min_saving_s), lambda folder: advice_on(folder, min_saving_s))


def _curve(context: Context, job_id: str, what_if: str, price: float | None) -> str:
    return _kept(context, job_id, curve_question(what_if, price), lambda folder: curve_for(folder, what_if, price))


def _kept(context: Context, job_id: str, question: str, answer: Callable[[JobFolder], str]) -> str:
    """Compute an answer, but only once for a job that has ended: a million tries take seconds."""
    folder = context.jobs.folder(job_id)
    if not folder.has_ended:
        return answer(folder)
    name = f"{job_id} {folder.generation()} {question}"
    return context.advice.get(name) or context.advice.put(name, kept_answer(folder, question) or answer(folder))


@router.operation(
    "GET /jobs/{job_id:job}/explanation", "Explain why a job doesn't run now", Explanation, (404, 409, 429)
)
async def explain(
    job_id: JobId,
    context: Ctx,
    mini_batch: Annotated[
        int | None, Query(ge=0, le=_MAX_ID, description="The id of a mini-batch; by default, the job as a whole.")
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
