"""Routes of advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded_answer
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.advice import advice_on, curve_for
from parallelrun_core.adviser.advice import Advice, AdviceCurve
from parallelrun_core.adviser.asked import PATTERN
from parallelrun_core.adviser.kept import advice_question, curve_question, kept_answer
from parallelrun_core.folder.job_folder import JobFolder

router = Operations("jobs")


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
