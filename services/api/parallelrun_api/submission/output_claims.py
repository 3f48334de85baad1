"""One output file, one job. Nothing is ever overwritten, so the later one of two would fail after all its work."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parallelrun_core.errors import Conflict, InvalidInput, Problem
from parallelrun_core.folder.claims import named_outputs
from parallelrun_core.folder.job_folder import JobFolder, JobRecord
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.pipeline_steps import LeafStep, leaf_steps
from parallelrun_core.storage.location import is_url
from parallelrun_core.store.registry import Registry


@dataclass(frozen=True)
class _Claim:
    """A file with rows, and the field that names it."""

    file: str
    pointer: str

    @property
    def name(self) -> str:
        return posixpath.basename(self.file)


def check_output_is_free(folder: JobFolder, spec: JobSpec, registry: Registry) -> None:
    """Make sure that a new job can publish its rows in the file that it names.

    Of an object, that is known only when it is published: nothing is asked of a server that a user names.

    Raises:
        Conflict: the file exists, or another job will write it.
    """
    _check(_of_job(folder, spec), registry, [folder.job_id])


def check_outputs_are_free(folder: JobFolder, steps: list[LeafStep], registry: Registry) -> None:
    """The same for a new pipeline and all its steps.

    Raises:
        InvalidInput: two steps name the same file.
        Conflict: one exists, or another job will write it.
    """
    claims = _of_steps(folder, steps)
    first: dict[str, _Claim] = {}
    problems = [
        Problem(
            pointer=claim.pointer,
            message=f"{claim.name!r} is also the file with the rows of another step, named at {other.pointer}",
            hint="each step needs a file of its own: name another folder or another append_row_file_name",
        )
        for claim in claims
        if (other := first.setdefault(claim.file, claim)) is not claim
    ]
    if problems:
        raise InvalidInput(problems=tuple(problems))
    _check(claims, registry, [folder.job_id])


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
    _raise([*_written_by_others(claims, registry, [record.job_id, *parent])])


def _of_job(folder: JobFolder, spec: JobSpec) -> list[_Claim]:
    file = folder.named_output(spec)
    return [_Claim(file, _pointer(spec))] if file is not None else []


def _of_steps(folder: JobFolder, steps: list[LeafStep]) -> list[_Claim]:
    return [_Claim(file, f"{step.pointer}{_pointer(step.spec)}") for step, file in named_outputs(folder, steps)]


def _pointer(spec: JobSpec) -> str:
    return f"/outputs/{spec.append_row_to}/path" if spec.append_row_to else "/output"


def _check(claims: Sequence[_Claim], registry: Registry, own: Sequence[str]) -> None:
    _raise([*_already_there(claims), *_written_by_others(claims, registry, own)])


def _already_there(claims: Sequence[_Claim]) -> Iterator[Problem]:
    for claim in claims:
        if not is_url(claim.file) and os.path.lexists(claim.file):
            message = f"{claim.name!r} is already there, and nothing is ever overwritten"
            hint = "name another folder or another append_row_file_name, or move that file away"
            yield Problem(pointer=claim.pointer, message=message, hint=hint)


def _written_by_others(claims: Sequence[_Claim], registry: Registry, own: Sequence[str]) -> Iterator[Problem]:
    writers = registry.writers_of([claim.file for claim in claims], other_than=own)
    for claim in claims:
        if (writer := writers.get(claim.file)) is not None:
            message = f"job {writer} will write {claim.name!r} there, and has not ended"
            hint = "wait for it or cancel it, or name another folder or another append_row_file_name"
            yield Problem(pointer=claim.pointer, message=message, hint=hint)


def _raise(problems: Sequence[Problem]) -> None:
    if problems:
        raise Conflict(problems=tuple(problems))
