"""Routes of the metrics that the entry script of a job has logged."""

from __future__ import annotations

from fastapi import APIRouter, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded, encoded_answer
from parallelrun_api.routes.responses import JobId, problems
from parallelrun_api.views.metrics import metric_report
from parallelrun_core.answers.reports import MetricReport

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.get(
    "/jobs/{job_id:job}/metrics",
    summary="Show metrics",
    response_model=MetricReport,
    responses=problems(404, 429),
)
async def show_metrics(job_id: JobId, context: Ctx) -> Response:
    """Return what the entry script has logged with `log_metric`, or with `Run.log…` of Azure ML, by name; also of a job
    that runs. What a try has logged stays when its mini-batch fails or is run again."""
    key = (show_metrics, job_id)
    return encoded_answer(await context.long_lists.run(key, lambda: encoded(_report(context, job_id))))


def _report(context: Context, job_id: str) -> MetricReport:
    folder = context.jobs.folder(job_id)
    folder.record()
    return metric_report(folder.logs)
