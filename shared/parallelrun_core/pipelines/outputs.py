"""Locations of a job's outputs, whether it is a job with mini-batches or a pipeline."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.ids import is_job_id
from parallelrun_core.layout import OUTPUTS, jobs_of
from parallelrun_core.pipelines.records import read_records
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.pipelines.turns import is_gathered, unrolled
from parallelrun_core.spec.expressions import same_name
from parallelrun_core.wire.states import StepState


class SkippedOutput(NotFound):
    """Nobody makes this output, because a condition is against it."""


class Origin(NamedTuple):
    """The job that has an output, and the name that the output has there."""

    job: JobFolder
    output: str
    is_gathered: bool = False
    """True: the job is a `parallel_for`, whose outputs are folders with those of its turns."""


class Part(NamedTuple):
    """A part of an output that a job with mini-batches makes."""

    name: str
    """The turn that has made it, such as `turn-1`; empty: it is the whole output."""
    job: JobFolder
    output: str


def output_path(folder: JobFolder, name: str) -> str:
    """The path, or the URL, of an output of a job by its name; of a pipeline's, that of the step which makes it.

    Raises:
        SkippedOutput: of a pipeline, a condition has skipped the step that makes it.
        NotFound: it has no such output, or, of a pipeline, no step has made it.
        CorruptLog, NewerSchema: what is in its folder can't be read.
    """
    origin = origin_of(folder, name)
    if origin.is_gathered:
        return str(origin.job.outputs / origin.output)
    return origin.job.output_paths(origin.job.record().job_spec())[origin.output]


def parts_of(folder: JobFolder, name: str) -> list[Part]:
    """The parts of an output, each with the job with mini-batches that makes it; those of skipped turns are left out.

    Raises:
        SkippedOutput, NotFound, CorruptLog, NewerSchema: as `output_path`.
    """
    origin = origin_of(folder, name)
    if not origin.is_gathered:
        return [Part("", origin.job, origin.output)]
    parts: list[Part] = []
    spec = origin.job.record().pipeline_spec()
    (body,) = spec.steps.values()
    (output,) = (key for key, bound in body.outputs_to.items() if bound == origin.output)
    for turn, standing in standings(origin.job, spec).items():
        if standing.state is StepState.COMPLETED:
            with suppress(NotFound):  # a condition has skipped it
                turn_parts = parts_of(JobFolder(folder.root, standing.job_id), output)
                parts += [each._replace(name=f"{turn}/{each.name}".rstrip("/")) for each in turn_parts]
    return parts


def origin_of(folder: JobFolder, name: str) -> Origin:
    """The job that an output of a job or of a pipeline comes from.

    Raises:
        SkippedOutput, NotFound, CorruptLog, NewerSchema: as `output_path`.
    """
    record = folder.record()
    if not record.is_pipeline:
        key = same_name(name, record.job_spec().outputs)
        if key is None:
            raise NotFound(f"Job {folder.job_id} has no output {name!r}.")
        return Origin(folder, key)
    records = read_records(folder)
    spec = record.pipeline_spec()
    pipeline = unrolled(spec, records)
    key = same_name(name, pipeline.outputs)
    if key is not None and is_gathered(spec):
        return Origin(folder, key, is_gathered=True)
    made_by = pipeline.outputs[key].of if key is not None else None
    if made_by is None:
        raise NotFound(f"The pipeline {folder.job_id} has no output {name!r}, or no step writes it.")
    standing = standings(folder, pipeline, records=records)[made_by.step]
    if not standing.job_id:
        decided, step = standing.record, f"The step {made_by.step!r} of the pipeline {folder.job_id}"
        if standing.state is StepState.SKIPPED and decided is not None and not decided.is_failure:
            raise SkippedOutput(f"{step} was skipped: no output {name!r}.")
        raise NotFound(f"{step} has not run: no output {name!r}.")
    return origin_of(JobFolder(folder.root, standing.job_id), made_by.output)


def jobs_of_turns(folder: JobFolder) -> set[str]:
    """The jobs in whose outputs those of a `parallel_for` are; none if the job is something else.

    Raises:
        CorruptLog, NewerSchema: what is in its folder can't be read.
    """
    record = folder.record()
    if not record.is_pipeline or not is_gathered(record.pipeline_spec()):
        return set()
    return {part.job.job_id for name in record.pipeline_spec().outputs for part in parts_of(folder, name)}


def job_of_output(root: Path, path: str) -> str:
    """The job in whose own outputs this path is; empty: it is elsewhere."""
    job_id, _, rest = path.removeprefix(f"{jobs_of(root)}/").partition("/")
    return job_id if is_job_id(job_id) and rest.partition("/")[0] == OUTPUTS else ""
