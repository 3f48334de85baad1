"""Show what `run()` would get of a job's inputs, before it is submitted."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from anyio.to_thread import run_sync
from fastapi import Query, Request, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import json_answer
from parallelrun_api.people.person import seen_places
from parallelrun_api.routes.files import outputs_of
from parallelrun_api.routes.responses import JobId, document_body
from parallelrun_api.routes.router import Operations
from parallelrun_api.submission.upload import read_document
from parallelrun_core.answers.drafts import DataPreview, JobExtent, OutputTable
from parallelrun_core.checks.data_preview import Bounds, preview
from parallelrun_core.checks.extent import extent_of
from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.intake.reading import Reading, read_job
from parallelrun_core.mltable.formats import step_for
from parallelrun_core.names.assets import Names
from parallelrun_core.pipelines.outputs import job_of_output
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.states import NodeState

router = Operations("jobs")

_MOST_ROWS: Final = 1000
_MEMORY_BYTES: Final = 2 << 30
_WAIT_S: Final = 30.0
_LISTING_S: Final = 15.0
_SCRIPT: Final = "preview.py"
_INPUTS: Final[dict[str, Any]] = {
    "description": "A job in any form that can be submitted, or only its `inputs` and perhaps its `input_data`.",
    "type": "object",
    "examples": [{"inputs": {"rows": {"path": "/srv/sales"}}}],
}
_BODY: Final = document_body(_INPUTS)


@router.operation(
    "POST /jobs:preview", "Show what run() would get", DataPreview, (400, 403, 413, 415, 429), openapi_extra=_BODY
)
async def preview_data(
    request: Request,
    context: Ctx,
    rows: Annotated[int, Query(ge=0, le=_MOST_ROWS, description="Rows of each table.")] = 20,
    *,
    guess: Annotated[bool, Query(description="Find out how files are read that no read step is given for.")] = True,
) -> Response:
    """Read the first rows of each input that a job would cut, as its workers would read them, and run nothing.

    It shows rows, types, encodings, compressions, skipped files and warnings. The paths are checked as those of a job
    that is submitted. Data in object stores are not shown, since the server has no credentials for them. What takes
    longer than 30 s is answered with 503.
    """
    spec, bounds = await _spec_and_bounds(request, context)
    read = partial(preview, spec, rows, guesses=guess, timeout_s=_WAIT_S, bounds=bounds)
    previews = await context.previews.run((spec.model_dump_json(), rows, guess), read)
    return json_answer(DataPreview(items=previews))


@router.operation(
    "POST /jobs:plan", "Show how much a job is", JobExtent, (400, 403, 413, 415, 429), openapi_extra=_BODY
)
async def plan_job(request: Request, context: Ctx) -> Response:
    """List and cut the inputs of a job as its leader would, and run nothing: how many mini-batches it has, and how many
    workers the nodes that are ready now may have for it. Listing ends after 15 s; what takes longer than 30 s is
    answered with 503. As in a preview, data in object stores are not listed."""
    spec, bounds = await _spec_and_bounds(request, context)
    measure = partial(extent_of, spec, timeout_s=_WAIT_S, listing_s=_LISTING_S, bounds=bounds)
    extent = await context.previews.run((spec.model_dump_json(), "plan"), measure)
    nodes = await run_sync(_ready_nodes, context, spec)
    return json_answer(
        JobExtent(
            mini_batches=extent.mini_batches,
            files=extent.files,
            rows=extent.rows,
            bytes=extent.bytes,
            is_complete=extent.is_complete,
            workers=sum(nodes),
            nodes=len(nodes),
        )
    )


@router.operation(
    "GET /jobs/{job_id:job}/output-table",
    "Show an output as a table",
    OutputTable,
    (400, 403, 404, 429),
    reads="outputs",
)
async def show_output_table(
    job_id: JobId,
    context: Ctx,
    *,
    path: Annotated[str, Query(min_length=1, max_length=4096, description="As in the list of outputs.")],
    rows: Annotated[int, Query(ge=1, le=_MOST_ROWS, description="The most rows.")] = 200,
) -> Response:
    """Read the first rows of an output as a table: CSV, JSON lines, Parquet or Avro, with the types of its columns.
    Only as much of the file is read as that needs. A file of another kind has no columns."""
    file, places = await run_sync(_place_of, context, job_id, path)
    if not step_for(file.name):
        return json_answer(_without_columns(str(file)))
    document: dict[str, Any] = {"inputs": {"rows": {"path": str(file)}}}
    reading = await run_sync(_reading, document, context.assets.names)
    spec, bounds = reading.job, _bounds(context, places)
    read = partial(preview, spec, rows, guesses=True, timeout_s=_WAIT_S, bounds=bounds)
    (table,) = await context.previews.run((spec.model_dump_json(), rows, True), read)
    if len(table.rows) < rows:
        total = len(table.rows) if table.is_complete else None
    else:
        document["inputs"]["rows"]["transformations"] = [table.read] if table.read else []
        spec = (await run_sync(_reading, document, context.assets.names)).job
        measure = partial(extent_of, spec, timeout_s=_WAIT_S, listing_s=_LISTING_S, bounds=bounds)
        total = (await context.previews.run((spec.model_dump_json(), "plan"), measure)).rows or None
    return json_answer(OutputTable(**msgspec.structs.asdict(table), total_rows=total))


def _without_columns(path: str) -> OutputTable:
    """The answer for a file that is no table, for which no process is needed."""
    return OutputTable(
        name="rows", path=path, kind="files", read=None, files=1, mini_batches=1, is_complete=True, first_files=[path],
        columns=[], rows=[], sampled_from=[], encodings={}, compressions={}, warnings=[], errors=[], total_rows=0,
    )  # fmt: skip


def _place_of(context: Context, job_id: str, path: str) -> tuple[Path, Places]:
    """Return where an output of a job is, and what may be read for it: the output that it is part of, whatever the job
    puts there meanwhile.

    Raises:
        NotFound: there is none of this path.
    """
    served, root = outputs_of(context, job_id), context.settings.root
    for folder in served.folders:
        with suppress(NotFound):
            os.close(folder.open(path))
            place = folder.anchor / folder.beneath
            file = place / (path.removeprefix(f"{folder.name}/") if folder.name else path)
            if made_by := job_of_output(root, f"{place}/"):
                return file, Places(roots=[], are_jobs_apart=True, jobs=[made_by])
            return file, Places(roots=[str(place)], are_jobs_apart=True)
    raise NotFound(f"There is no file {path[:200]!r} here.")


async def _spec_and_bounds(request: Request, context: Context) -> tuple[JobSpec, Bounds]:
    return await _bounded(await read_document(request), context)


async def _bounded(document: object, context: Context) -> tuple[JobSpec, Bounds]:
    """Return the job of a document, whose inputs may be read and are in no store, and what reading may use."""
    reading = await run_sync(_reading, document, context.assets.names)
    with reading.locating_problems():
        await run_sync(context.submissions.check_inputs, reading.job)
        _check_near(reading.job)
    return reading.job, _bounds(context, seen_places(context.settings.places))


def _bounds(context: Context, places: Places) -> Bounds:
    return Bounds(root=str(context.settings.root), places=places, memory_bytes=_MEMORY_BYTES)


def _ready_nodes(context: Context, spec: JobSpec) -> list[int]:
    """Return the workers that each node may have for a job, of as many nodes as it may have."""
    workers = sorted(
        (
            info.workers_of(spec.max_concurrency_per_instance, spec.gpus_of_worker)
            for info, is_alive in context.nodes.all()
            if is_alive and info.state is NodeState.READY and info.compute == (spec.compute or "")
        ),
        reverse=True,
    )
    return workers[: spec.instance_count] if spec.instance_count else workers


def _reading(document: object, names: Names) -> Reading:
    if isinstance(document, dict) and document.keys() <= {"inputs", "input_data"}:
        document = {**document, "entry_script": _SCRIPT}
    return read_job(document, names=names)


def _check_near(spec: JobSpec) -> None:
    for name, job_input in spec.data_inputs():
        if not storage_of(job_input.path).is_near:
            hint = "run `parallelrun data preview` on a machine that has them"
            message = "data in object stores are not shown here: the server has no credentials for them"
            raise InvalidInput.at(f"/inputs/{name}/path", message, hint)
