"""Routes of what was measured of a job: metrics that its script has logged, requests to stores, use of nodes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.measurements import metric_report, storage_report
from parallelrun_api.views.node_usage import MOST_NODES, node_usage
from parallelrun_core.answers.node_usage import NodeUsageReport
from parallelrun_core.answers.reports import MetricReport, StorageReport

router = Operations("jobs")

_Limit = Annotated[int, Query(ge=1, le=MOST_NODES, description="The most nodes that are listed.")]


@router.operation("GET /jobs/{job_id:job}/metrics", "Show metrics", MetricReport, (404, 429))
async def show_metrics(job_id: JobId, context: Ctx) -> Response:
    """Return what the entry script has logged with `log_metric`, or with `Run.log…` of Azure ML, by name; also of a job
    that runs. What a try has logged stays when its mini-batch fails or is run again."""
    key = (show_metrics, job_id)
    return await context.long_lists.answer(key, lambda: _metric_report(context, job_id))


def _metric_report(context: Context, job_id: str) -> MetricReport:
    folder = context.jobs.folder(job_id)
    folder.record()
    return metric_report(folder.logs)


@router.operation("GET /jobs/{job_id:job}/storage", "Show requests to object stores", StorageReport, (404, 429))
async def show_storage(job_id: JobId, context: Ctx) -> Response:
    """Requests, bytes, latencies, failures and retries of a job by process, object store and operation; of a job that
    runs, as of the last time that they were written down."""
    key = (show_storage, job_id)
    return await context.long_lists.answer(key, lambda: storage_report(logs_of(context, job_id, "/sys/storage")))


@router.operation("GET /jobs/{job_id:job}/node-usage", "Show what the nodes of a job use", NodeUsageReport, (404, 429))
async def show_node_usage(job_id: JobId, context: Ctx, limit: _Limit = 100) -> Response:
    """CPU, memory, GPUs, disk and network of each node that has worked for a job, when it was measured last, with the
    last 60 measurements, and of all together. `resource_monitor_interval` of the job says how often nodes measure. Each
    node counts with all that runs there, also for other jobs."""
    key = (show_node_usage, job_id, limit)
    return await context.pictures.answer(key, lambda: node_usage(logs_of(context, job_id), limit))
