"""Logs and outputs: their lists, the files themselves, and the lines of logs, searched or merged by time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Header, Query, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.paging import DEFAULT_LIMIT, Limit, PathToken, clamped
from parallelrun_api.routes.responses import FilePath, JobId, content
from parallelrun_api.routes.router import Operations
from parallelrun_api.views.downloads import TEXT, ByteRange, download, image_type_of
from parallelrun_api.views.files import ServedFolder, ServedFolders, page, page_begin
from parallelrun_api.views.log_search import MAX_TEXT, Search, search
from parallelrun_api.views.merged_logs import Merge, merged_lines
from parallelrun_api.views.outputs import ServedOutputs
from parallelrun_core.answers.files import FileList, LogLines, MergedLines
from parallelrun_core.service import telemetry
from parallelrun_core.storage.path_rule import PathRule

log = telemetry.logger()
router = Operations("files", about="Logs and outputs.")

Range = Annotated[str | None, Header(description="One range of bytes; several are answered with the whole file.")]
IfRange = Annotated[str | None, Header(description="Send the range only if the file still has this ETag.")]
Tail = Annotated[int | None, Query(description="Only this many last lines, at most 100,000 of them.")]


async def _wanted(range: Range = None, if_range: IfRange = None, tail: Tail = None) -> ByteRange:
    return ByteRange(range=range, if_range=if_range, tail=tail)


Part = Annotated[ByteRange, Depends(_wanted)]

_PARTIAL: Final[dict[int | str, dict[str, Any]]] = {206: {"description": "The requested range."}}


@router.operation("GET /jobs/{job_id:job}/logs", "List logs", FileList, (404, 429), reads="logs")
async def list_logs(job_id: JobId, context: Ctx, page_token: PathToken = "") -> Response:
    """The log files of a job, by path, 10,000 on each page."""
    return await _listed(context, logs_of, job_id, page_token)


@router.operation(
    "GET /jobs/{job_id:job}/logs/{path:path}",
    "Read a log",
    None,
    (404, 416),
    others={**content("text/plain", "The log."), **_PARTIAL},
    reads="each",
)
def read_log(
    job_id: JobId,
    path: FilePath,
    context: Ctx,
    part: Part,
) -> Response:
    """A log file, a range of its bytes, or its last lines. To follow a log, ask for the range after what you have."""
    fd = logs_of(context, job_id).open(path)
    return download(fd, Path(path).name, TEXT, part, context.file_reads)


@router.operation("GET /jobs/{job_id:job}/outputs", "List outputs", FileList, (404, 429), reads="outputs")
async def list_outputs(job_id: JobId, context: Ctx, page_token: PathToken = "") -> Response:
    """The output files of a job, by path, 10,000 on each page.

    Of a folder that the job named for its output, only its own files; those of an output that has a path of its own
    are below the name of that output. Of outputs in object stores, `elsewhere` has the URLs. Those of a pipeline are
    below their names, and what its last steps have made, of which nothing is such an output, below the steps' names.
    """
    return await _listed(context, outputs_of, job_id, page_token)


@router.operation(
    "GET /jobs/{job_id:job}/outputs/{path:path}",
    "Download an output",
    None,
    (404, 416),
    others={**content("application/octet-stream", "The file."), **_PARTIAL},
    reads="each",
)
def read_output(
    job_id: JobId,
    path: FilePath,
    context: Ctx,
    part: Part,
) -> Response:
    """An output file, a range of its bytes, or its last lines. A picture has its own media type (PNG, JPEG, GIF, WebP,
    BMP), whatever its name; all else are bytes."""
    fd = outputs_of(context, job_id).open(path)
    log.info("output_opened", job_id=job_id)
    return download(fd, Path(path).name, image_type_of(fd), part, context.file_reads)


async def _listed(
    context: Context, of: Callable[[Context, str], ServedFolder | ServedFolders], job_id: str, page_token: str
) -> Response:
    key = (of, job_id, page_token)
    return await context.long_lists.answer(key, lambda: page(of(context, job_id), page_begin(page_token)))


def logs_of(context: Context, job_id: str, below: str = "") -> ServedFolder:
    """The logs of a job.

    Args:
        below: only those of this folder, as in `/sys/node`.

    Raises:
        NotFound: there is no such job.
    """
    folder = context.jobs.folder(job_id)
    folder.record()
    return ServedFolder(anchor=folder.path.parent, beneath=f"{job_id}/logs{below}", names=context.folder_names)


def outputs_of(context: Context, job_id: str) -> ServedFolders:
    """The outputs of a job.

    Raises:
        NotFound: there is no such job, or it has none.
    """
    rule = PathRule(context.settings.root, context.settings.places)
    return ServedOutputs(rule, context.folder_names).of(context.jobs.folder(job_id))


@router.operation("GET /jobs/{job_id:job}/log-lines", "Search in logs", LogLines, (404, 429), reads="logs")
async def search_logs(
    job_id: JobId,
    context: Ctx,
    *,
    text: Annotated[str, Query(min_length=1, max_length=MAX_TEXT, description="What the lines have in them.")],
    path: Annotated[str, Query(max_length=4096, description="Only logs whose paths begin like this.")] = "",
    any_case: Annotated[bool, Query(description="`a` is `A`, in ASCII.")] = False,
    limit: Limit = DEFAULT_LIMIT,
    page_token: PathToken = "",
) -> Response:
    """The lines of a job's logs that have a text, each with its number and the byte at which it begins. A page searches
    64 MiB, and no longer than half a second; so it may have no line, and still not be the last."""
    query = Search(text=text, is_any_case=any_case, within=path, limit=clamped(limit))
    key = (search_logs, job_id, query, page_token)
    return await context.pictures.answer(key, lambda: search(logs_of(context, job_id), query, page_token))


_Level = Annotated[
    Literal["", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    Query(description="The least level. What was printed without one counts as INFO, on stderr as WARNING."),
]


@router.operation(
    "GET /jobs/{job_id:job}/merged-logs", "Read the logs of all workers by time", MergedLines, (404, 429), reads="logs"
)
async def read_merged_logs(
    job_id: JobId,
    context: Ctx,
    *,
    source: Annotated[Literal["yours", "all"], Query(description="Only what the script says, or all.")] = "yours",
    level: _Level = "",
    worker: Annotated[str, Query(max_length=600, description="A node, or `node/process`.")] = "",
    mini_batch: Annotated[int | None, Query(ge=0, description="What was said while this one ran.")] = None,
    order: Annotated[
        Literal["oldest", "newest"], Query(description="Pages from the begin, or from the end.")
    ] = "oldest",
    limit: Annotated[int, Query(ge=1, le=1000, description="The most lines of a page.")] = 200,
    page_token: PathToken = "",
) -> Response:
    """The lines that the workers of a job have printed and logged, by time. A page reads one block of each log,
    16 MiB of all; with filters it may have no line, and still not be the last. Of commands, and of jobs of earlier
    releases, nothing says when they have printed what (`has_time`)."""
    merge = Merge(
        yours=source == "yours",
        level=level,
        worker=worker,
        mini_batch=mini_batch,
        newest=order == "newest",
        limit=limit,
    )
    key = (read_merged_logs, job_id, merge, page_token)
    return await context.pictures.answer(key, lambda: merged_lines(logs_of(context, job_id), merge, page_token))
