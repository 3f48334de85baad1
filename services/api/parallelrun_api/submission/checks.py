"""Checks the paths of a submitted job before anything is written, and reports all problems at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parallelrun_api.people.person import seen_places
from parallelrun_core.code.source import is_there
from parallelrun_core.errors import NotFound, Problem
from parallelrun_core.limits.definition import limit_catalog
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.names.assets import INCLUDES, stored_code
from parallelrun_core.problems import Problems
from parallelrun_core.spec import Input, JobSpec
from parallelrun_core.spec.requirements import host_of
from parallelrun_core.storage.interface import PathProblem
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.storage.stores import storage_of

_PACKAGE_HOSTS: Final = (
    "name the package alone, or have the operator list the host (PARALLELRUN_PACKAGE_HOSTS of the API)"
)
_NO_TAKEOVER: Final = "a step of a pipeline can't take over mini-batches of an earlier job"
_REUSED: Final = "leave it out: steps that are equal to completed ones are reused, and `job resume` runs only the rest"


def _limits(root: Path, spec: JobSpec) -> Iterator[Problem]:
    """Yield a problem for each limit that a job names and the cluster has not."""
    catalog = limit_catalog(root) if spec.rate_limits else None
    for number, name in enumerate(spec.rate_limits if catalog is not None else ()):
        try:
            limit_catalog(root).get(name)
        except NotFound as error:
            yield Problem(pointer=f"/rate_limits/{number}", message=error.message)


@dataclass(frozen=True, kw_only=True)
class PathChecks:
    """The rules for a job's paths."""

    root: Path
    """The folder that the services share."""
    places: Places
    """The places where all paths of jobs must be, whoever submits them."""

    def rule(self) -> PathRule:
        """Return what a job that the person of the request submits now may use."""
        return PathRule(self.root, seen_places(self.places))

    def check(self, spec: JobSpec, *, has_zip: bool, rule: PathRule | None = None) -> None:
        """Make sure that a job can read its inputs and code and can write its output.

        Args:
            rule: what `rule()` returns, if the caller has asked for it.

        Raises:
            InvalidInput: with one problem for each wrong path.
        """
        rule = rule or self.rule()
        code = _code(rule, spec, has_zip=has_zip)
        limits = _limits(self.root, spec)
        Problems([*code, *_inputs(rule, spec), *_outputs(rule, spec), *_packages(rule, spec), *limits]).check()
        _check_tables(rule, spec)

    def check_inputs(self, spec: JobSpec) -> None:
        """Make sure that a job can read its inputs, whatever else it lacks.

        Raises:
            InvalidInput: with one problem for each wrong path.
        """
        rule = self.rule()
        Problems([*_inputs(rule, spec)]).check()
        _check_tables(rule, spec)

    def check_step(self, step_spec: JobSpec, *, has_zip: bool) -> None:
        """Make sure of the same for a step of a pipeline, as far as paths are known yet: what other steps make is
        checked when it is there.

        Args:
            step_spec: its spec without the inputs that other steps make.
            has_zip: a zip was sent with the pipeline; a relative path of code is a folder in it.

        Raises:
            InvalidInput: with one problem for each wrong path.
        """
        rule = self.rule()
        problems = Problems([*_inputs(rule, step_spec), *_outputs(rule, step_spec), *_packages(rule, step_spec)])
        problems.problems.extend(_limits(self.root, step_spec))
        is_in_zip = has_zip and bool(step_spec.code) and not os.path.isabs(step_spec.code)
        if is_in_zip and step_spec.additional_includes:
            problems.wrong(f"/{INCLUDES}", "the code is already sent as a zip", "put these files into it")
        elif not is_in_zip:
            problems.problems += _code(rule, step_spec, has_zip=False)
        if step_spec.resume_from:
            problems.wrong("/resume_from", _NO_TAKEOVER, _REUSED)
        problems.check()
        _check_tables(rule, step_spec)


def _code(rule: PathRule, spec: JobSpec, *, has_zip: bool) -> Iterator[Problem]:
    code = spec.code
    is_needed = not spec.command and not spec.additional_includes
    if has_zip and (code or spec.additional_includes):
        pointer = "/code" if code else f"/{INCLUDES}"
        yield Problem(pointer=pointer, message="the code is already sent as a zip", hint="leave this field out")
    elif is_needed and not has_zip and not code:
        yield Problem(
            pointer="/code",
            message="this field is required without a zip of the code",
            hint="the folder of the entry script, or multipart/form-data with the parts 'spec' and 'code'",
        )
    elif stored_code(code):
        return  # whoever takes it finds out whether it is there
    elif code and (problem := _place(rule, "/code", code)):
        yield problem
    elif code and not _is_folder(code):
        yield Problem(pointer="/code", message=f"there is no folder {code!r}")
    if not has_zip:
        yield from _includes(rule, spec)


def _includes(rule: PathRule, spec: JobSpec) -> Iterator[Problem]:
    for number, path in enumerate(spec.additional_includes):
        pointer = f"/{INCLUDES}/{number}"
        if problem := _place(rule, pointer, path):
            yield problem
        elif not is_there(Path(path)):
            yield Problem(pointer=pointer, message=f"there is no file or folder {path!r}")


def _inputs(rule: PathRule, spec: JobSpec) -> Iterator[Problem]:
    listed = {name for name, _ in spec.data_inputs()}
    for name, job_input in spec.input_paths():
        pointer = f"/inputs/{name}/path"
        fixed, pattern = storage_of(job_input.path).split(job_input.path)
        problem = _place(rule, pointer, fixed, pattern if name in listed else None)
        if problem := problem or _content(rule, pointer, job_input):
            yield problem


def _check_tables(rule: PathRule, spec: JobSpec) -> None:
    """Check MLTable files, steps and keys, and the paths that an MLTable file names.

    Raises:
        InvalidInput: with one problem for each wrong place.
    """
    problems = []
    for plan in plan_inputs(spec, rule, fetches=False):
        for source in plan.sources:
            pointer = f"/inputs/{plan.name}/path"
            problem = _place(rule, pointer, source.path, source.pattern)
            storage = storage_of(source.path)
            if problem is None and storage.is_near and not storage.is_there(source.path):
                message = f"the MLTable names {source.path!r}, which does not exist"
                problem = Problem(pointer=pointer, message=message)
            if problem:
                problems.append(problem)
    Problems(problems).check()


def _outputs(rule: PathRule, spec: JobSpec) -> Iterator[Problem]:
    if spec.output and (problem := _output(rule, "/output", spec.output)):
        yield problem
    for name, output in spec.outputs.items():
        is_file = output.type == "uri_file"
        if output.path and (problem := _output(rule, f"/outputs/{name}/path", output.path, is_file=is_file)):
            yield problem
        elif is_file and not (spec.command or name == spec.append_row_to) and is_url(output.path or spec.output):
            message = "a file that several workers write can't be in an object store, which has no appending"
            hint = "type: uri_folder, where the script writes a file for each mini-batch"
            yield Problem(pointer=f"/outputs/{name}/type", message=message, hint=hint)


def _packages(rule: PathRule, spec: JobSpec) -> Iterator[Problem]:
    for url, field in spec.environment.urls_elsewhere(rule.package_hosts).items():
        message = f"{url}: nodes take no packages from the host {host_of(url)}"
        yield Problem(pointer=f"/environment/{field}", message=message, hint=_PACKAGE_HOSTS)


def _output(rule: PathRule, pointer: str, path: str, *, is_file: bool = False) -> Problem | None:
    """The problem with a folder or file that a job is to write, if any."""
    storage = storage_of(path)
    refused = _problem(pointer, storage.place_trouble(path, rule, is_written=True))
    return refused or _problem(pointer, storage.output_trouble(path, is_file=is_file))


def _place(rule: PathRule, pointer: str, path: str, pattern: Sequence[str] | None = None) -> Problem | None:
    """The problem with the location of a path that is read, if any."""
    return _problem(pointer, storage_of(path).place_trouble(path, rule, pattern=pattern))


def _content(rule: PathRule, pointer: str, job_input: Input) -> Problem | None:
    """The problem with the files of an input, if any."""
    is_one_file = job_input.type == "uri_file"
    return _problem(
        pointer, storage_of(job_input.path).input_trouble(job_input.path, is_one_file=is_one_file, rule=rule)
    )


def _problem(pointer: str, trouble: PathProblem | None) -> Problem | None:
    return trouble and Problem(pointer=pointer, message=trouble.message, hint=trouble.hint)


def _is_folder(path: str) -> bool:
    try:
        return storage_of(path).is_folder(path)
    except OSError:
        return False
