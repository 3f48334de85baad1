"""Reuse: a step that is equal to one which has completed takes over its outputs, and needs not run.

Equal are the code, all fields that can matter, and the content of all inputs: of files, as `fingerprints.py` tells
them apart; of what another step has made, by its hash, or by the job that has made it.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import time
from collections.abc import Mapping
from typing import Final

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.pipelines.finished import FinishedStep, add_finished, finished_with
from parallelrun_core.pipelines.outputs import job_of_output, origin_of, parts_of
from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.retention.marks import Marks
from parallelrun_core.service.telemetry import logger
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.later_inputs import StepInput
from parallelrun_core.spec.notify import Notified
from parallelrun_core.spec.pipeline import Step
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.states import JobState
from parallelrun_master.pipelines.fingerprints import Unknown, content_of, content_of_outputs

log = logger()

_MOST_S: Final = 20.0
"""How long jobs are compared that have made the outputs of one step: a turn is short."""
_EXCLUDED: Final = {"name", "description", "tags", "experiment", "code", "inputs", "compute", *Notified.model_fields}
"""Fields of a job that don't change what it makes, or whose content is compared instead."""


def reuse_key(folder: JobFolder, step: Step, job: JobRecord, by_step: Mapping[str, StepStanding]) -> str:
    """Return what a step has in common with equal ones; empty if that can't be known, or it is to run each time.

    Args:
        folder: of any job of the cluster.
        job: what would run the step.
        by_step: the steps that it needs have completed.
    """
    if step.type == "pipeline" or not step.is_deterministic:
        return ""
    spec = job.job_spec()
    if not spec.outputs and not spec.writes_rows:
        return ""  # it is run for what else it does
    rule = JobFolder(folder.root, job.job_id).path_rule(job)
    try:
        inputs = {}
        for name, job_input in sorted(spec.inputs.items()):
            inputs[name] = job_input.model_dump(mode="json", exclude={"path"})
            later = step.inputs_from.get(name)
            if isinstance(later, StepInput) and not later.literal:
                inputs[name]["content"] = _identity(JobFolder(folder.root, by_step[later.step].job_id), later.output)
            elif isinstance(job_input, Input):
                inputs[name]["content"] = content_of(job_input, rule)
    except (Unknown, OSError, ParallelRunError):
        return ""
    fields = {name: value for name, value in job.spec.items() if name not in _EXCLUDED}
    fields |= {"turn": step.turn} if step.turn else {}
    compared = {"version": 1, "type": step.type, "code": step.code, "fields": fields, "inputs": inputs}
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def _identity(folder: JobFolder, output: str) -> str:
    """Identifies what a step has made."""
    origin = origin_of(folder, output)
    if origin.is_gathered:
        return " ".join(f"{part.name}={_identity(part.job, part.output)}" for part in parts_of(folder, output))
    maker, name = origin.job, origin.output
    spec, result = maker.record().job_spec(), maker.result()
    is_rows = spec.append_row_to == name and spec.outputs[name].type == "uri_file"
    if is_rows and result is not None and result.output_sha256:
        return f"sha256:{result.output_sha256}:{posixpath.basename(result.output)}"
    return f"job:{maker.job_id}/{maker.generation()}/{name}"


def finished_before(folder: JobFolder, job: JobRecord, key: str) -> FinishedStep | None:
    """A job that has made the outputs of a step, if they are all still what it has made and may be read."""
    until = time.monotonic() + _MOST_S
    for finished in finished_with(folder.root, key):
        earlier = JobFolder(folder.root, finished.job_id)
        try:
            if _is_whole(earlier, finished, job):
                return finished
        except (Unknown, OSError, ParallelRunError) as error:
            log.info("not_reused", job_id=finished.job_id, error=str(error))
        if time.monotonic() > until:
            break
    return None


def _is_whole(earlier: JobFolder, finished: FinishedStep, job: JobRecord) -> bool:
    result, record = earlier.result(), earlier.record()
    if (
        Marks(earlier).is_deleted
        or result is None
        or result.state is not JobState.COMPLETED
        or earlier.generation() != finished.generation
    ):
        return False
    paths = _outputs(earlier, record, result)
    is_apart = job.places is not None and job.places.are_jobs_apart and record.outermost != job.outermost
    if is_apart and any(job_of_output(earlier.root, path) for path in paths):
        return False  # workers of other users can't read it
    return finished.content == content_of_outputs(paths, earlier.path_rule(record))


def _outputs(earlier: JobFolder, record: JobRecord, result: JobResult) -> list[str]:
    spec = record.job_spec()
    rows = [earlier.output_file(spec)] if result.output else []
    return list(dict.fromkeys([*earlier.output_paths(spec).values(), *rows]))


def offer_for_reuse(folder: JobFolder, step: Step, standing: StepStanding, by_step: Mapping[str, StepStanding]) -> None:
    """Let later steps reuse what a step has made, if it has failed nowhere, and its inputs are still the same."""
    record, result = standing.record, standing.result
    if record is None or not record.key or standing.is_reused or result is None:
        return
    if result.progress.failed or result.progress.items_failed:
        return
    child = JobFolder(folder.root, record.job)
    try:
        job = child.record()
        if reuse_key(folder, step, job, by_step) != record.key:
            return
        if result.output and storage_of(result.output).version(result.output).size_bytes != result.output_bytes:
            return  # somebody has replaced the rows since
        content = content_of_outputs(_outputs(child, job, result), child.path_rule(job))
    except (Unknown, OSError, ParallelRunError):
        return
    finished = FinishedStep(job_id=record.job, generation=standing.job_generation, at=result.ended, content=content)
    add_finished(folder.root, record.key, finished)
