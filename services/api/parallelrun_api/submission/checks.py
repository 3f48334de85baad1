"""Checks the paths of a submitted job before anything is written, and reports all problems at once."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parallelrun_core.errors import Problem
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.paths import within
from parallelrun_core.patterns import has_wildcard, split_pattern
from parallelrun_core.problems import Problems
from parallelrun_core.spec import Input, JobSpec

_MAX_LOOKED_AT: Final = 100_000
"""Entries to look at in search of a first file; more empty folders than that are left to the master."""


@dataclass(frozen=True, kw_only=True)
class PathChecks:
    """The rules for a job's paths."""

    root: Path
    """The folder that the services share; jobs must not write the services' own files in it."""
    roots: list[Path]
    """The folders below which all paths of jobs must lie."""

    def check(self, spec: JobSpec, *, has_zip: bool) -> None:
        """Make sure that a job can read its inputs and code and can write its output.

        Raises:
            InvalidInput: with one problem for each wrong path.
        """
        problems = [*self._code(spec.code, has_zip), *self._inputs(spec), *self._outputs(spec)]
        Problems(problems).check()
        self._check_tables(spec)

    def _code(self, code: str, has_zip: bool) -> Iterator[Problem]:
        if has_zip and code:
            yield Problem(pointer="/code", message="the code is already sent as a zip", hint="leave this field out")
        elif not has_zip and not code:
            yield Problem(
                pointer="/code",
                message="this field is required without a zip of the code",
                hint="the folder of the entry script, or multipart/form-data with the parts 'spec' and 'code'",
            )
        elif code and (problem := self._place("/code", code)):
            yield problem
        elif code and not _is_folder(Path(code)):
            yield Problem(pointer="/code", message=f"there is no folder {code!r}")

    def _inputs(self, spec: JobSpec) -> Iterator[Problem]:
        for name, given in spec.input_paths():
            pointer = f"/inputs/{name}/path"
            problem = self._place(pointer, _fixed_part(given.path)) or _content(pointer, given)
            if problem:
                yield problem

    def _check_tables(self, spec: JobSpec) -> None:
        """Check MLTable files, steps and keys, and the paths that an MLTable file names.

        Raises:
            InvalidInput: with one problem for each wrong place.
        """
        problems = []
        for plan in plan_inputs(spec):
            for source in plan.sources:
                pointer = f"/inputs/{plan.name}/path"
                problem = self._place(pointer, source.path)
                if problem is None and not os.path.lexists(source.path):
                    problem = Problem(
                        pointer=pointer, message=f"the MLTable names {source.path!r}, which does not exist"
                    )
                if problem:
                    problems.append(problem)
        Problems(problems).check()

    def _outputs(self, spec: JobSpec) -> Iterator[Problem]:
        if spec.output and (problem := self._output("/output", spec.output, Path(spec.output))):
            yield problem
        for name, given in spec.outputs.items():
            folder = Path(given.path) if given.type == "uri_folder" else Path(given.path).parent
            if given.path and (problem := self._output(f"/outputs/{name}/path", given.path, folder)):
                yield problem

    def _output(self, pointer: str, path: str, folder: Path) -> Problem | None:
        """The problem with a folder or file that a job is to write, if any."""
        problem = self._place(pointer, path)
        if problem is None and within(Path(path), [self.root / "jobs", self.root / "code"]):
            problem = Problem(
                pointer=pointer,
                message=f"{path!r} is among ParallelRun's own files",
                hint="leave this field out to have the output in the job's folder",
            )
        return problem or _writable(pointer, folder)

    def _place(self, pointer: str, path: str) -> Problem | None:
        """The problem with the location of a path, if any."""
        if not path.startswith("/"):
            return Problem(
                pointer=pointer,
                message=f"{path!r} is relative, but there is no job file to resolve it against",
                hint="give an absolute path on the server",
            )
        try:
            allowed = within(Path(path), self.roots)
        except (OSError, RuntimeError, ValueError) as error:
            return Problem(pointer=pointer, message=f"{path[:200]!r} can't be used as a path: {error}")
        if not allowed:
            return Problem(
                pointer=pointer,
                message=f"{path!r} is outside of the folders that jobs may use",
                hint=f"allowed_roots: {':'.join(map(str, self.roots))}",
            )
        return None


def _fixed_part(path: str) -> str:
    """The path, or of a glob pattern the folder that it starts from."""
    return path if os.path.lexists(path) else split_pattern(path)[0]


def _content(pointer: str, given: Input) -> Problem | None:
    """The problem with the files of an input, if any."""
    path = Path(given.path)
    try:
        if path.is_dir():
            return _folder_content(pointer, given)
        return None if path.is_file() else _pattern_content(pointer, given.path)
    except PermissionError as error:
        return Problem(pointer=pointer, message=f"{error.filename or given.path!r} can't be read: permission denied")
    except OSError as error:
        return Problem(pointer=pointer, message=f"{given.path[:200]!r} can't be read: {error.strerror}")


def _folder_content(pointer: str, given: Input) -> Problem | None:
    if given.type == "uri_file":
        return Problem(pointer=pointer, message=f"{given.path!r} is a folder", hint="type: uri_folder")
    if not _holds_a_file(Path(given.path)):
        return _empty(pointer, f"the folder {given.path!r} has no files")
    return None


def _pattern_content(pointer: str, pattern: str) -> Problem | None:
    fixed = _fixed_part(pattern)
    if os.path.lexists(pattern) or not has_wildcard(pattern) or not _is_folder(Path(fixed)):
        return Problem(pointer=pointer, message=f"there is no file or folder {fixed!r}")
    # Matching such a pattern may take a walk through millions of folders.
    any_match = _holds_a_file(Path(fixed)) if "**" in pattern else _matches(pattern)
    return None if any_match else _empty(pointer, f"no file matches {pattern!r}")


def _empty(pointer: str, message: str) -> Problem:
    return Problem(pointer=pointer, message=message, hint="there is nothing to cut into mini-batches")


def _matches(pattern: str) -> bool:
    return any(
        _holds_a_file(Path(found)) if _is_folder(Path(found)) else True
        for found in glob.iglob(pattern)  # noqa: PTH207 - Path.glob takes no absolute pattern
    )


def _holds_a_file(folder: Path) -> bool:
    """Whether a file is somewhere below a folder, as it will be listed; stops at the first."""
    pending = [str(folder)]
    looked_at = 0
    while pending:
        current = pending.pop()
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    looked_at += 1
                    if looked_at > _MAX_LOOKED_AT or entry.is_file():
                        return True
                    if entry.is_dir():
                        pending.append(entry.path)
        except OSError as error:
            if error.filename != current:
                return True  # a link to itself is listed as a file
            if current == str(folder):
                raise
    return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _writable(pointer: str, folder: Path) -> Problem | None:
    """The reason why a folder, or a file in it, can't be created, if any; leaves nothing behind."""
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            return None
    except NotADirectoryError:
        return Problem(pointer=pointer, message=f"{str(existing)!r} is not a folder")
    except OSError as error:
        return Problem(pointer=pointer, message=f"{str(existing)!r} can't be written to: {error.strerror}")
