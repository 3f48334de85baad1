"""Which steps have completed, by what they were made of: `reuse/<key>/<job id>.json`, on the volume.

A step with the same key would make the same outputs. An entry says only that a job has made them once, and what was in
them; whether they are still that is found out when they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from parallelrun_core.errors import CorruptLog, NewerSchema
from parallelrun_core.folder.files import write_once
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER, finished_steps
from parallelrun_core.folder.schema import SCHEMA, decode, encode


class FinishedStep(msgspec.Struct, kw_only=True, frozen=True):
    """A job that has completed in this generation."""

    schema: int = SCHEMA
    job_id: str
    generation: int
    at: float
    content: str = ""
    """Identifies what was in its outputs; empty in an entry of an earlier release, which says nothing then."""


def add_finished(root: Path, key: str, finished: FinishedStep) -> None:
    """Add a job, durably; again, it changes nothing.

    Raises:
        OSError: the volume can't be written.
    """
    folder = finished_steps(root) / key
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        write_once(folder / f"{finished.job_id}.{finished.generation}.json", encode(finished), mode=PRIVATE_FILE)


def finished_with(root: Path, key: str) -> Iterator[FinishedStep]:
    """The jobs that have completed with this key, the last one first; none that can't be read."""
    folder = finished_steps(root) / key
    try:
        paths = sorted(folder.glob("job_*.json"), reverse=True)
    except OSError:
        return
    for path in paths:
        with suppress(OSError, CorruptLog, NewerSchema):
            yield decode(path.read_bytes(), FinishedStep, path)
