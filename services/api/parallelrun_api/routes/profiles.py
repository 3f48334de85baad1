"""Profiles of a job as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from fastapi import Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.routes.files import logs_of
from parallelrun_api.routes.responses import JobId
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.answer import Answer
from parallelrun_core.answers.profiles import Profile, ProfileCall, ProfiledFunction, ProfiledWorker, ProfileTree
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.wire.masking import Mask

if TYPE_CHECKING:
    from parallelrun_api.profiles.reading import Profiles
    from parallelrun_api.profiles.sums import Function

router = Operations("jobs")

Sort = Literal["cumulative", "own", "calls"]
_Node = Annotated[str, Query(max_length=255, description="Only workers of this node.")]
_Process = Annotated[str, Query(max_length=255, description="Only workers of this name, such as `process000`.")]
_FIELDS: Final[dict[Sort, str]] = {"cumulative": "cumulative_s", "own": "own_s", "calls": "calls"}


class _Selection(NamedTuple):
    """The workers whose profiles are added up."""

    job_id: str
    node: str
    process: str


@router.operation("GET /jobs/{job_id:job}/profile", "Show the profile of the script", Profile, (404, 429))
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
    "GET /jobs/{job_id:job}/profile/tree", "Show the profile of the script as a tree of calls", ProfileTree, (404, 429)
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
