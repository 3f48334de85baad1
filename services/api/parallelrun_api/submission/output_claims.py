"""Claims of output files, each by one job. Nothing is ever overwritten, so the later one of two would fail after all
its work."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from parallelrun_api.submission.step_problems import Names, StepProblems
from parallelrun_core.errors import Conflict, InvalidInput, Problem
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.intake.launching import named_outputs
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline_steps import LeafStep, leaf_steps
from parallelrun_core.storage.location import is_url
from parallelrun_core.store.registry import Registry


@dataclass(frozen=True)
class _Claim:
    """A file with rows, and the field that names it."""

    file: str
    pointer: str
    step: Names = ()

    @property
    def name(self) -> str:
        return posixpath.basename(self.file)


def check_output_is_free(folder: JobFolder, spec: JobSpec, registry: Registry) -> None:
    """Make sure that a new job can publish its rows in the file that it names.

    Of an object, that is known only when it is published: nothing is asked of a server that a user names.

    Raises:
        Conflict: the file exists, or another job will write it.
    """
    claims = _of_job(folder, spec)
    writers = _writers(claims, registry, [folder.job_id])
    _raise([problem for claim in claims if (problem := _already_there(claim) or _written_by(claim, writers))])


def check_outputs_are_free(
    folder: JobFolder, steps: list[LeafStep], registry: Registry, problems: StepProblems
) -> None:
    """Check the outputs of a new pipeline and of all its steps, which must not name one file twice either.

    Args:
        problems: gathers what is wrong.
    """
    claims = _of_steps(folder, steps)
    writers = _writers(claims, registry, [folder.job_id])
    first: dict[str, _Claim] = {}
    for claim in claims:
        other = first.setdefault(claim.file, claim)
        with problems.of(claim.step):
            if other is not claim:
                message = f"the step {'/'.join(other.step)!r} writes its rows to {claim.name!r} there, too"
                raise InvalidInput.at(claim.pointer, message, "name another folder or another append_row_file_name")
            _raise([problem for problem in (_already_there(claim) or _written_by(claim, writers),) if problem])


def check_nobody_else_writes(folder: JobFolder, record: JobRecord, registry: Registry) -> None:
    """Make sure that no other job that has not ended will publish the same files.

    Two jobs that are submitted in the same instant both pass: the later one to publish then fails, and keeps its rows.

    Raises:
        Conflict: another job will.
    """
    if record.is_pipeline:
        claims = _of_steps(folder, leaf_steps(record.pipeline_spec()))
    else:
        claims = _of_job(folder, record.job_spec())
    parent = [record.parent.job_id, record.parent.owner] if record.parent is not None else []
    writers = _writers(claims, registry, [record.job_id, *parent])
    _raise([problem for claim in claims if (problem := _written_by(claim, writers))])


def _of_job(folder: JobFolder, spec: JobSpec) -> list[_Claim]:
    file = folder.named_output(spec)
    return [_Claim(file, _pointer(spec))] if file is not None else []


def _of_steps(folder: JobFolder, steps: list[LeafStep]) -> list[_Claim]:
    return [_Claim(file, _pointer(step.spec), step.names) for step, file in named_outputs(folder, steps)]


def _pointer(spec: JobSpec) -> str:
    return f"/outputs/{spec.append_row_to}/path" if spec.append_row_to else "/output"


def _writers(claims: Sequence[_Claim], registry: Registry, own_jobs: Sequence[str]) -> dict[str, str]:
    return registry.writers_of([claim.file for claim in claims], other_than=own_jobs)


def _already_there(claim: _Claim) -> Problem | None:
    if is_url(claim.file) or not os.path.lexists(claim.file):
        return None
    message = f"{claim.name!r} is already there, and nothing is ever overwritten"
    hint = "name another folder or another append_row_file_name, or move that file away"
    return Problem(pointer=claim.pointer, message=message, hint=hint)


def _written_by(claim: _Claim, writers: dict[str, str]) -> Problem | None:
    if (writer := writers.get(claim.file)) is None:
        return None
    message = f"job {writer} will write {claim.name!r} there, and has not ended"
    hint = "wait for it or cancel it, or name another folder or another append_row_file_name"
    return Problem(pointer=claim.pointer, message=message, hint=hint)


def _raise(problems: Sequence[Problem]) -> None:
    if problems:
        raise Conflict(problems=tuple(problems))
