"""One output file, one job. Nothing is ever overwritten, so the later one of two would fail after all its work."""

from __future__ import annotations

import os
import posixpath

from parallelrun_core.errors import Conflict, Problem
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.store.registry import Registry


def check_output_is_free(folder: JobFolder, spec: JobSpec, registry: Registry) -> None:
    """Make sure that a new job can publish its rows in the file that it names.

    Of an object, that is known only when it is published: nothing is asked of a server that a user names.

    Raises:
        Conflict: the file exists, or another job will write it.
    """
    target = folder.named_output(spec)
    if target is not None and not is_url(target) and os.path.lexists(target):
        raise _taken(
            spec,
            f"{posixpath.basename(target)!r} is already there, and nothing is ever overwritten",
            "name another folder or another append_row_file_name, or move that file away",
        )
    check_nobody_else_writes(folder, spec, registry)


def check_nobody_else_writes(folder: JobFolder, spec: JobSpec, registry: Registry) -> None:
    """Make sure that no other job that has not ended will publish the same file.

    Two jobs that are submitted in the same instant both pass: the later one to publish then fails, and keeps its rows.

    Raises:
        Conflict: another job will.
    """
    target = folder.named_output(spec)
    writer = registry.writer_of(target, other_than=folder.job_id) if target is not None else None
    if target is not None and writer is not None:
        raise _taken(
            spec,
            f"job {writer} will write {posixpath.basename(target)!r} there, and has not ended",
            "wait for it or cancel it, or name another folder or another append_row_file_name",
        )


def _taken(spec: JobSpec, message: str, hint: str) -> Conflict:
    pointer = f"/outputs/{spec.append_row_to}/path" if spec.append_row_to else "/output"
    return Conflict(problems=(Problem(pointer=pointer, message=message, hint=hint),))
