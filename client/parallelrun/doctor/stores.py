"""The object stores that a job names, as they answer this machine with the credentials that it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from parallelrun.doctor.job import jobs_of, outputs_of
from parallelrun_core.checks.stores import readable, writable
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.finding import Check, Finding, Place


def inputs(place: Place) -> Iterator[Finding]:
    """Return whether inputs in stores can be listed and read."""
    for path, job in _jobs(place):
        for name, job_input in job.input_paths():
            if is_url(job_input.path):
                yield readable(f"{path}: input {name}" if path else f"input {name}", job_input.path)


def outputs(place: Place) -> Iterator[Finding]:
    """Return whether outputs in stores can be written, without replacing what is there. What it writes, it removes."""
    for name, path, is_file in (each for of, job in _jobs(place) for each in outputs_of(of, job)):
        if path and is_url(path) and not storage_of(path).output_trouble(path, is_file=is_file):
            yield from writable(name, path.rpartition("/")[0] if is_file else path)


def _jobs(place: Place) -> list[tuple[str, JobSpec]]:
    from parallelrun.embedded import datastores

    os.environ.setdefault("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1")  # an answer is wanted within seconds
    datastores.use()
    return jobs_of(place)


CHECKS: Final[tuple[Check, ...]] = (inputs, outputs)
