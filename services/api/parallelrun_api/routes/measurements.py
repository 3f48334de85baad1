"""Routes of what was measured of a job: metrics that its script has logged, requests to stores, use of nodes, stacks
and profiles of its workers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from fastapi import Query, Response
from pydantic import Field

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.models import RequestModel
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.files import ServedFolder
from parallelrun_api.views.measurements import metric_report, storage_report
from parallelrun_api.views.node_usage import MOST_NODES, node_usage
from parallelrun_core.answers.answer import Answer, answer_of, rfc3339
from parallelrun_core.answers.nodes import NodeUsageReport
from parallelrun_core.answers.profiles import Profile, ProfileCall, ProfiledFunction, ProfiledWorker, ProfileTree
from parallelrun_core.answers.reports import MetricReport, StorageReport
from parallelrun_core.answers.stacks import NodeStacks, StacksAsked, StacksReport
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.stacks import decode_stacks
from parallelrun_core.wire.masking import Mask

if TYPE_CHECKING:
    from parallelrun_api.profiles.reading import Profiles
    from parallelrun_api.profiles.sums import Function

router = Operations("jobs")

_Limit = Annotated[int, Query(ge=1, le=MOST_NODES, description="The most nodes that are listed.")]
_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 16 << 20
"""Of one; of all together, as of one: the rest is left out."""

_Name = Annotated[str, Field(max_length=255)]
Sort = Literal["cumulative", "own", "calls"]
_Node = Annotated[str, Query(max_length=255, description="Only workers of this node.")]
_Process = Annotated[str, Query(max_length=255, description="Only workers of this name, such as `process000`.")]
_FIELDS: Final[dict[Sort, str]] = {"cumulative": "cumulative_s", "own": "own_s", "calls": "calls"}


@router.operation("GET /jobs/{job_id:job}/metrics", "Show metrics", MetricReport, (404, 429), reads="metrics")
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


class StacksWish(RequestModel):
    """Whose stacks are wanted."""

    node: _Name = ""
    """Only those of this node; empty: of all that work for the job."""
    process: _Name = ""
    """Only that of the worker of this name, such as `process000`; empty: of all of them."""


@router.operation(
    "POST /jobs/{job_id:job}:stacks",
    "Ask where the workers of a job are",
    StacksAsked,
    (400, 403, 404, 409),
    "They were asked. They answer within seconds; the job is not disturbed.",
    status=202,
)
def ask_for_stacks(job_id: JobId, context: Ctx, wish: StacksWish | None = None) -> Response:
    """Let the workers of a running job write down the stacks of their threads, also those that hang. A job for which no
    node works now, and one that runs a command, has none (409)."""
    wish = wish or StacksWish()
    spec = context.jobs.folder(job_id).record().spec
    if spec.get("command"):
        raise Conflict(f"Job {job_id} runs a command: no Python of ours is in its processes.")
    nodes = [node for node in context.job_views.nodes_at_work(job_id) if wish.node in ("", node)]
    if not nodes:
        where = f"node {wish.node!r} doesn't work" if wish.node else "no node works"
        raise Conflict(f"There is nothing to show: {where} for job {job_id} now.")
    request_id = context.nodes.ask_for_stacks(job_id, node=wish.node, process=wish.process)
    return json_answer(StacksAsked(id=request_id, nodes=nodes), 202)


@router.operation(
    "GET /jobs/{job_id:job}/stacks", "Show where the workers of a job were", StacksReport, (404, 429), reads="pictures"
)
async def show_stacks(job_id: JobId, context: Ctx) -> Response:
    """Return what each node has answered to the last `:stacks` that it has heard of."""
    key = (show_stacks, job_id)
    return await context.long_lists.answer(key, lambda: _report(logs_of(context, job_id, "/sys/stacks")))


def _report(served: ServedFolder) -> StacksReport:
    """Return what all nodes say, by node. What isn't an answer of a node, or is gone, is left out."""
    items: list[NodeStacks] = []
    remaining_bytes = _MOST_BYTES
    for entry in islice(served.files(), _MOST_FILES):
        text = served.head(entry.path, remaining_bytes)
        remaining_bytes -= len(text)
        node_stacks = decode_stacks(text)
        if node_stacks is not None:
            items.append(answer_of(NodeStacks, node_stacks, at=rfc3339(node_stacks.at)))
    return StacksReport(items=items)


class _Selection(NamedTuple):
    """The workers whose profiles are added up."""

    job_id: str
    node: str
    process: str


@router.operation(
    "GET /jobs/{job_id:job}/profile", "Show the profile of the script", Profile, (404, 429), reads="pictures"
)
async def show_profile(
    job_id: JobId,
    context: Ctx,
    *,
    node: _Node = "",
    process: _Process = "",
    sort: Annotated[
        Sort, Query(description="The order of functions: the most cumulative time, own time or calls first.")
    ] = "cumulative",
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of functions.")] = 100,
) -> Response:
    """The functions in which the workers of a job with a `profiling_module` have spent their time; of all, of a node,
    or of one. While the job runs, as of the last half minute."""

    def answer(folder: JobFolder, profiles: Profiles, to_fields: Callable[[Function], dict[str, Any]]) -> Answer:
        functions = profiles.sum.functions
        first = sorted(functions, key=lambda each: (-getattr(functions[each], _FIELDS[sort]), each))[:limit]
        return Profile(
            profiling_module=str(folder.record().spec.get("profiling_module") or ""),
            workers=[ProfiledWorker(**each._asdict()) for each in profiles.workers],
            left_out=profiles.left_out,
            total_s=round(profiles.sum.total_s, 6),
            count=len(functions) + profiles.sum.left_out,
            items=[
                ProfiledFunction(
                    **to_fields(each),
                    calls=functions[each].calls,
                    plain_calls=functions[each].plain_calls,
                    own_s=round(functions[each].own_s, 6),
                    cumulative_s=round(functions[each].cumulative_s, 6),
                )
                for each in first
            ],
        )

    selection = _Selection(job_id, node, process)
    return await _answered(context, (show_profile, selection, sort, limit), selection, answer)


@router.operation(
    "GET /jobs/{job_id:job}/profile/tree",
    "Show the profile of the script as a tree of calls",
    ProfileTree,
    (404, 429),
    reads="pictures",
)
async def show_profile_tree(
    job_id: JobId,
    context: Ctx,
    *,
    node: _Node = "",
    process: _Process = "",
    depth: Annotated[int, Query(ge=1, le=50, description="Calls in each other, at most.")] = 15,
    limit: Annotated[int, Query(ge=1, le=2000, description="Maximum number of calls.")] = 300,
) -> Response:
    """Return the measurements as a tree, for an icicle view: the calls that take most."""

    def answer(_: JobFolder, profiles: Profiles, to_fields: Callable[[Function], dict[str, Any]]) -> Answer:
        from parallelrun_api.profiles.tree import tree_of

        return ProfileTree(
            total_s=round(profiles.sum.total_s, 6),
            items=[
                ProfileCall(
                    **to_fields(each.function),
                    parent=each.parent,
                    depth=each.depth,
                    seconds=round(each.seconds, 6),
                    own_s=round(each.own_s, 6),
                )
                for each in tree_of(profiles.sum, depth=depth, limit=limit)
            ],
        )

    selection = _Selection(job_id, node, process)
    return await _answered(context, (show_profile_tree, selection, depth, limit), selection, answer)


async def _answered(
    context: Context,
    key: tuple[object, ...],
    selection: _Selection,
    answer: Callable[[JobFolder, Profiles, Callable[[Function], dict[str, Any]]], Answer],
) -> Response:
    def read() -> Answer:
        from parallelrun_api.profiles.reading import read_profiles

        folder = context.jobs.folder(selection.job_id)
        mask = Mask(folder.record().spec)

        def shown(function: Function) -> dict[str, Any]:
            texts = {"function": mask.printable(function.name), "file": mask.printable(function.file)}
            return {**texts, "line": function.line}

        served = logs_of(context, selection.job_id, "/sys/node")
        return answer(folder, read_profiles(served, node=selection.node, process=selection.process), shown)

    return await context.long_lists.answer(key, read)
