"""Checks the paths of a submitted job before anything is written, and reports all problems at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from parallelrun_core.errors import Problem
from parallelrun_core.folder.layout import code_store, jobs_of
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.problems import Problems
from parallelrun_core.spec import Input, JobSpec
from parallelrun_core.storage.interface import Trouble
from parallelrun_core.storage.stores import storage_of


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
        elif code and not _is_folder(code):
            yield Problem(pointer="/code", message=f"there is no folder {code!r}")

    def _inputs(self, spec: JobSpec) -> Iterator[Problem]:
        for name, given in spec.input_paths():
            pointer = f"/inputs/{name}/path"
            fixed, _ = storage_of(given.path).split(given.path)
            problem = self._place(pointer, fixed) or _content(pointer, given)
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
                if problem is None and not storage_of(source.path).is_there(source.path):
                    problem = Problem(
                        pointer=pointer, message=f"the MLTable names {source.path!r}, which does not exist"
                    )
                if problem:
                    problems.append(problem)
        Problems(problems).check()

    def _outputs(self, spec: JobSpec) -> Iterator[Problem]:
        if spec.output and (problem := self._output("/output", spec.output)):
            yield problem
        for name, given in spec.outputs.items():
            is_file = given.type == "uri_file"
            if given.path and (problem := self._output(f"/outputs/{name}/path", given.path, is_file=is_file)):
                yield problem

    def _output(self, pointer: str, path: str, *, is_file: bool = False) -> Problem | None:
        """The problem with a folder or file that a job is to write, if any."""
        storage = storage_of(path)
        problem = self._place(pointer, path)
        if problem is None and storage.is_within(path, [jobs_of(self.root), code_store(self.root)]):
            problem = Problem(
                pointer=pointer,
                message=f"{path!r} is among ParallelRun's own files",
                hint="leave this field out to have the output in the job's folder",
            )
        return problem or _problem(pointer, storage.output_trouble(path, is_file=is_file))

    def _place(self, pointer: str, path: str) -> Problem | None:
        """The problem with the location of a path, if any."""
        return _problem(pointer, storage_of(path).place_trouble(path, self.roots))


def _content(pointer: str, given: Input) -> Problem | None:
    """The problem with the files of an input, if any."""
    return _problem(pointer, storage_of(given.path).input_trouble(given.path, is_one_file=given.type == "uri_file"))


def _problem(pointer: str, trouble: Trouble | None) -> Problem | None:
    return trouble and Problem(pointer=pointer, message=trouble.message, hint=trouble.hint)


def _is_folder(path: str) -> bool:
    try:
        return storage_of(path).is_folder(path)
    except OSError:
        return False
