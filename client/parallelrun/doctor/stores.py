"""The object stores that a job names, as they answer this machine with the credentials that it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from parallelrun_core.checks.finding import Check, Finding, Place
from parallelrun_core.checks.stores import readable, writable
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of


def inputs(place: Place) -> Iterator[Finding]:
    """Whether inputs in stores can be listed and read."""
    spec = _spec(place)
    for name, given in spec.input_paths() if spec else ():
        if is_url(given.path):
            yield readable(f"input {name}", given.path)


def outputs(place: Place) -> Iterator[Finding]:
    """Whether outputs in stores can be written, without replacing what is there. What it writes, it removes."""
    spec = _spec(place)
    if spec is None:
        return
    named = [("output", spec.output, False)]
    named += [(f"outputs.{name}", each.path, each.type == "uri_file") for name, each in spec.outputs.items()]
    for name, path, is_file in named:
        if path and is_url(path) and not storage_of(path).output_trouble(path, is_file=is_file):
            yield from writable(name, path.rpartition("/")[0] if is_file else path)


def _spec(place: Place) -> JobSpec | None:
    """The job; None if there is none, or it can't be read, which `job` says."""
    from parallelrun.embedded import datastores
    from parallelrun.names import own_names
    from parallelrun.spec_file import read_job_file

    os.environ.setdefault("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1")  # an answer is wanted within seconds
    datastores.use()
    if place.job_file is not None:
        with suppress(InvalidInput):
            return read_job_file(place.job_file, names=own_names).job
    return None


CHECKS: Final[tuple[Check, ...]] = (inputs, outputs)
