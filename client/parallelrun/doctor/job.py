"""A job file, as far as it can be checked without submitting it. Its paths are those of this machine."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.checks.finding import Check, Finding, Place, bad, ok, warn
from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.reading import Reading
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of

_COUNT_S: Final = 3.0
_RESOLVE_S: Final = 4.0


def file(place: Place) -> Iterator[Finding]:
    """Whether it is a job file, and what it names is there: inputs, code, entry script."""
    from parallelrun.spec_file import check_paths

    if place.job_file is None:
        return
    try:
        reading = _read(place.job_file)
        yield ok(f"{place.job_file} describes the job {reading.job.name!r}")
        for note in reading.notes:
            yield warn(str(note), "see docs/compatibility.md")
        with reading.locating_problems():
            check_paths(reading.job)
            plan_inputs(reading.job, fetches=False)
        script = f", entry script ({reading.job.entry_script})" if reading.job.entry_script else ""
        yield ok(f"code{script} and inputs are there")
    except InvalidInput as error:
        for problem in error.problems:
            where = ": ".join(filter(None, (problem.place, problem.pointer))) or str(place.job_file)
            yield bad(f"{where}: {problem.message}", problem.hint or "mend the job file")


def inputs(place: Place) -> Iterator[Finding]:
    """How many files there are."""
    spec = _spec(place)
    for name, given in spec.data_inputs() if spec else ():
        storage = storage_of(given.path)
        if not storage.is_near:
            continue  # said by `stores`
        if storage.input_trouble(given.path, is_one_file=given.type == "uri_file"):
            continue  # said by `file`
        count, end, more = 0, time.monotonic() + _COUNT_S, ""
        for _, names in storage.files(given.path):
            count += len(names)
            if time.monotonic() > end:
                more = " or more"
                break
        yield ok(f"input {name}: {count:,}{more} file{'' if count == 1 else 's'}")


def outputs(place: Place) -> Iterator[Finding]:
    """Whether what it names for its results can be written."""
    spec = _spec(place)
    if spec is None:
        return
    named = [("output", spec.output, False)]
    named += [(f"outputs.{name}", each.path, each.type == "uri_file") for name, each in spec.outputs.items()]
    for name, path, is_file in named:
        if path and is_url(path) and not storage_of(path).output_trouble(path, is_file=is_file):
            continue  # said by `stores`
        trouble = storage_of(path).output_trouble(path, is_file=is_file) if path else None
        if trouble:
            yield bad(f"{name}: {trouble.message}", trouble.hint or "name another folder, or change its owner or mode")
        elif path:
            yield ok(f"{name}: {path} can be written")


def environment(place: Place) -> Iterator[Finding]:
    """Whether the packages that it asks for can be had, as seen from here."""
    spec = _spec(place)
    if spec is None or not spec.environment.is_own:
        return
    asked = spec.environment
    import uv

    with tempfile.TemporaryDirectory(prefix="parallelrun-doctor-") as scratch:
        wanted = Path(scratch) / "requirements.in"
        wanted.write_text("\n".join(asked.requirements) + "\n")
        python = ["--python-version", asked.python] if asked.python else []
        command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-header", *python, str(wanted)]
        try:
            done = subprocess.run(
                [*command, "--cache-dir", f"{scratch}/cache"],
                cwd=scratch, capture_output=True, text=True, timeout=_RESOLVE_S, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            yield warn(f"its {len(asked.requirements)} requirements were not resolved in {_RESOLVE_S:g} s", _LATER)
            return
    if done.returncode:
        yield warn(f"its environment can't be resolved from here: {' '.join(done.stderr.split())[:500]}", _LATER)
    else:
        yield ok(f"its {len(asked.requirements)} requirements can be resolved")


_LATER: Final = "the nodes build it with their own indexes; if they fail, too, mend the names and versions"


def _read(path: Path) -> Reading:
    from parallelrun.names import own_names
    from parallelrun.spec_file import read_job_file

    return read_job_file(path, names=own_names)


def _spec(place: Place) -> JobSpec | None:
    """The job; None if there is none, or `file` says why it can't be read."""
    try:
        return _read(place.job_file).job if place.job_file else None
    except InvalidInput:
        return None


CHECKS: Final[tuple[Check, ...]] = (file, inputs, outputs, environment)
