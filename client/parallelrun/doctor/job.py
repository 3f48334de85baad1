"""A job file, as far as it can be checked without submitting it. Its paths are those of this machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.errors import InvalidInput, Unavailable
from parallelrun_core.figures import counted
from parallelrun_core.intake.reading import Reading
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.service.children import Child, variables_for
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

_COUNT_S: Final = 3.0
_READ_S: Final = 4.0
_MOST_COLUMNS: Final = 12
_RESOLVE_S: Final = 4.0


def file(place: Place) -> Iterator[Finding]:
    """Return whether it is a job file, and what it names is there: inputs, code, entry script."""
    from parallelrun.job_file.reading import check_paths

    if place.job_file is None:
        return
    try:
        reading = _read(place.job_file)
        jobs = list(reading.jobs())
        subject = (
            f"the pipeline {reading.spec.name!r} of {counted(len(jobs), 'job')}" if reading.pipeline else "the job "
        )
        yield ok(f"{place.job_file} describes {subject}{'' if reading.pipeline else repr(reading.spec.name)}")
        for note in reading.notes:
            yield warn(str(note), "see docs/compatibility.md")
        for path, each in jobs:
            with each.locating_problems():
                check_paths(each.job)
                plan_inputs(each.job, fetches=False)
            script = f", entry script ({each.job.entry_script})" if each.job.entry_script else ""
            yield ok(f"{_of(path)}code{script} and inputs are there")
    except InvalidInput as error:
        for problem in error.problems:
            where = ": ".join(filter(None, (problem.place, problem.pointer))) or str(place.job_file)
            yield bad(f"{where}: {problem.message}", problem.hint or "mend the job file")


def inputs(place: Place) -> Iterator[Finding]:
    """Return how many files there are."""
    named = [
        (f"{_of(path)}input {name}", job_input) for path, job in jobs_of(place) for name, job_input in job.data_inputs()
    ]
    for name, job_input in named:
        storage = storage_of(job_input.path)
        if not storage.is_near:
            continue  # said by `stores`
        if storage.input_trouble(job_input.path, is_one_file=job_input.type == "uri_file"):
            continue  # said by `file`
        count, end, more = 0, time.monotonic() + _COUNT_S, ""
        for _, names in storage.files(job_input.path):
            count += len(names)
            if time.monotonic() > end:
                more = " or more"
                break
        yield ok(f"{name}: {count:,}{more} file{'' if count == 1 else 's'}")


def rows(place: Place) -> Iterator[Finding]:
    """Yield what run() would get of the tables, and each warning about them."""
    from parallelrun_core.checks.data_preview import preview

    for path, job in jobs_of(place):
        if not any(job_input.transformations or job_input.type == "mltable" for _, job_input in job.data_inputs()):
            continue
        try:
            previews = preview(job, rows=1, timeout_s=_READ_S)
        except Unavailable as error:
            yield warn(f"{_of(path)}its tables can't be looked at: {error}", "try: parallelrun data preview JOB.yml")
            continue
        for each in previews:
            name = f"{_of(path)}input {each.name}"
            if each.columns:
                columns = ", ".join(f"{column.name} ({column.type})" for column in each.columns[:_MOST_COLUMNS])
                more = f" and {len(each.columns) - _MOST_COLUMNS:,} more" if len(each.columns) > _MOST_COLUMNS else ""
                yield ok(f"{name}: {columns}{more}")
            for text in each.warnings:
                yield warn(f"{name}: {text}", "look at the rows: parallelrun data preview JOB.yml")
            for text in each.errors:
                yield bad(f"{name}: {text}", "look at the rows: parallelrun data preview JOB.yml")


def outputs(place: Place) -> Iterator[Finding]:
    """Return whether what it names for its results can be written."""
    for name, path, is_file in (each for of, job in jobs_of(place) for each in outputs_of(of, job)):
        if path and is_url(path) and not storage_of(path).output_trouble(path, is_file=is_file):
            continue  # said by `stores`
        trouble = storage_of(path).output_trouble(path, is_file=is_file) if path else None
        if trouble:
            yield bad(f"{name}: {trouble.message}", trouble.hint or "name another folder, or change its owner or mode")
        elif path:
            yield ok(f"{name}: {path} can be written")


def environment(place: Place) -> Iterator[Finding]:
    """Return whether the packages that it asks for can be had, as seen from here."""
    by_environment = {(*job.environment.requirements, job.environment.python): job for _, job in jobs_of(place)}
    for spec in by_environment.values():
        if spec.environment.is_own:
            yield _resolved(spec)


def _resolved(spec: JobSpec) -> Finding:
    environment_spec = spec.environment
    import uv

    with tempfile.TemporaryDirectory(prefix="parallelrun-doctor-") as scratch:
        requirements_file = Path(scratch) / "requirements.in"
        requirements_file.write_text("\n".join(environment_spec.requirements) + "\n")
        python = ["--python-version", environment_spec.python] if environment_spec.python else []
        command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-header", *python, str(requirements_file)]
        try:
            done = subprocess.run(
                [*command, "--cache-dir", f"{scratch}/cache"],
                cwd=scratch, capture_output=True, text=True, timeout=_RESOLVE_S, check=False, stdin=subprocess.DEVNULL,
                env=variables_for(Child.INSTALLER, os.environ),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return warn(
                f"its {len(environment_spec.requirements)} requirements were not resolved in {_RESOLVE_S:g} s", _LATER
            )
    if done.returncode:
        return warn(f"its environment can't be resolved from here: {' '.join(done.stderr.split())[:500]}", _LATER)
    return ok(f"its {counted(len(environment_spec.requirements), 'requirement')} can be resolved")


_LATER: Final = "the nodes build it with their own indexes; if they fail, too, mend the names and versions"


def _read(path: Path) -> Reading:
    from parallelrun.job_file.reading import read_job_file
    from parallelrun.resources.names import local_resolver

    return read_job_file(path, names=local_resolver)


def jobs_of(place: Place) -> list[tuple[str, JobSpec]]:
    """The job, or those of a pipeline, each with its path there and as far as it is known; none if there is no file, or
    `file` says why it can't be read.
    """
    try:
        return [(path, each.job) for path, each in _read(place.job_file).jobs()] if place.job_file else []
    except InvalidInput:
        return []


def outputs_of(path: str, job: JobSpec) -> list[tuple[str, str, bool]]:
    """Return what a job, or one of a pipeline, names for its results: what it is called, where it is, whether it is a
    file."""
    of = _of(path)
    named = [(f"{of}outputs.{name}", each.path, each.type == "uri_file") for name, each in job.outputs.items()]
    return [(f"{of}output", job.output, False), *named]


def _of(path: str) -> str:
    return f"{path}: " if path else ""


CHECKS: Final[tuple[Check, ...]] = (file, inputs, rows, outputs, environment)
