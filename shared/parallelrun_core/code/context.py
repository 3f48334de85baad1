"""Build contexts: a folder with a Dockerfile, less what its `.dockerignore` names.

It is kept like code, by the hash of its content, so it is the same whoever takes it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_core.code.docker_ignore import IGNORE_FILE, POINTER, DockerIgnore
from parallelrun_core.code.folder import FilesBelow, files_below, opened_top
from parallelrun_core.code.ignore_file import ignore_lines
from parallelrun_core.code.snapshots import MAX_BYTES, MAX_FILES, SnapshotLimits, store_files
from parallelrun_core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from parallelrun_core.storage.path_rule import PathRule

CONTEXT: Final = SnapshotLimits(
    noun="what the image is built of",
    pointer=POINTER,
    hint=f"a line in {IGNORE_FILE} at the top of that folder leaves out what its Dockerfile doesn't copy",
    files=MAX_FILES,
    bytes=MAX_BYTES,
)


def context_files(
    folder: Path, dockerfile: str, leave_out: Path | None = None, rule: PathRule | None = None
) -> FilesBelow:
    """The files of which an image is built.

    Args:
        leave_out: a folder that may be below it and is no part of it.
        rule: what the folder itself is checked by, once it is open.

    Raises:
        InvalidInput: there is no such folder or no such Dockerfile in it; a link leads out of it; a line of its ignore
            file is no pattern.
    """
    with opened_top(folder, CONTEXT.pointer, rule) as top:
        if not _is_file(top, dockerfile):
            raise without_dockerfile(dockerfile)
        ignored = DockerIgnore(ignore_lines(top, IGNORE_FILE, CONTEXT.pointer) or [], dockerfile)
        yield from _with_dockerfile(files_below(top, ignored, leave_out), dockerfile)


def _is_file(top: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=top).st_mode)
    except OSError:
        return False


def _with_dockerfile(files: FilesBelow, dockerfile: str) -> FilesBelow:
    """These files, and an error in the words of an image if there is one, or the Dockerfile isn't among them."""
    has_dockerfile = False

    def located(problem: Problem) -> Problem:
        message = problem.message.replace("the code folder", "that folder")
        return replace(problem, pointer=CONTEXT.pointer, message=message, hint=CONTEXT.hint)

    try:
        for parts, mode, file in files:
            has_dockerfile |= "/".join(parts) == dockerfile
            yield parts, mode, file
    except InvalidInput as error:
        error.replace_problems(located)
        raise
    if not has_dockerfile:  # it is in a folder of a kind that is never taken
        raise without_dockerfile(dockerfile)


def without_dockerfile(dockerfile: str) -> InvalidInput:
    """The error for a folder that lacks its Dockerfile."""
    return InvalidInput.at(
        "/environment/build/dockerfile_path", f"there is no file {dockerfile!r} in the folder that `path` names"
    )


def snapshot_context(
    folder: Path, dockerfile: str, store: Path, leave_out: Path | None = None, rule: PathRule | None = None
) -> str:
    """Copy what an image is built of into a store; returns the snapshot's name.

    Raises:
        InvalidInput: as `context_files` says; or it is over a limit.
    """
    return store_files(context_files(folder, dockerfile, leave_out, rule), store, CONTEXT)
