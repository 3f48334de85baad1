"""Locations of a job's outputs, whether it is a job with mini-batches or a pipeline."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.ids import is_job_id
from parallelrun_core.layout import OUTPUTS, jobs_of
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.spec.expressions import same_name
from parallelrun_core.wire.states import StepState


class SkippedOutput(NotFound):
    """Nobody makes this output, because a condition is against it."""


def output_path(folder: JobFolder, name: str) -> str:
    """The path, or the URL, of an output of a job by its name; of a pipeline's, that of the step which makes it.

    Raises:
        SkippedOutput: of a pipeline, a condition has skipped the step that makes it.
        NotFound: it has no such output, or, of a pipeline, no step has made it.
        CorruptLog, NewerSchema: what is in its folder can't be read.
    """
    maker, key = maker_of(folder, name)
    return maker.output_paths(maker.record().job_spec())[key]


def maker_of(folder: JobFolder, name: str) -> tuple[JobFolder, str]:
    """The job with mini-batches that makes an output of a job or of a pipeline, and the name that the output has there.

    Raises:
        SkippedOutput, NotFound, CorruptLog, NewerSchema: as `output_path`.
    """
    record = folder.record()
    if not record.is_pipeline:
        key = same_name(name, record.job_spec().outputs)
        if key is None:
            raise NotFound(f"Job {folder.job_id} has no output {name!r}.")
        return folder, key
    pipeline = record.pipeline_spec()
    key = same_name(name, pipeline.outputs)
    made_by = pipeline.outputs[key].of if key is not None else None
    if made_by is None:
        raise NotFound(f"The pipeline {folder.job_id} has no output {name!r}, or no step writes it.")
    standing = standings(folder, pipeline)[made_by.step]
    if not standing.job_id:
        decided, step = standing.record, f"The step {made_by.step!r} of the pipeline {folder.job_id}"
        if standing.state is StepState.SKIPPED and decided is not None and not decided.is_failure:
            raise SkippedOutput(f"{step} was skipped: no output {name!r}.")
        raise NotFound(f"{step} has not run: no output {name!r}.")
    return maker_of(JobFolder(folder.root, standing.job_id), made_by.output)


def job_of_output(root: Path, path: str) -> str:
    """The job in whose own outputs this path is; empty: it is elsewhere."""
    job_id, _, rest = path.removeprefix(f"{jobs_of(root)}/").partition("/")
    return job_id if is_job_id(job_id) and rest.partition("/")[0] == OUTPUTS else ""
