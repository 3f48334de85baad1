"""Finished steps, by what they were made of: `reuse/<key>/<job id>.json`, on the volume.

A step with the same key would make the same outputs. An entry says only that a job has made them once, and what was in
them; whether they are still that is found out when they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.schema import SCHEMA
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.layout import finished_steps


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
    _finished(root, key).put_if_absent(f"{finished.job_id}.{finished.generation}", finished)


def finished_with(root: Path, key: str) -> Iterator[FinishedStep]:
    """The jobs that have completed with this key, the last one first; none that can't be read."""
    steps = _finished(root, key)
    with suppress(OSError):
        for name in reversed(steps.names()):
            with suppress(OSError, NotFound, CorruptLog, NewerSchema):
                yield steps.get(name)


def _finished(root: Path, key: str) -> Documents[FinishedStep]:
    folder = finished_steps(root)
    return Documents(FileStore(folder.parent, folder.name).child(key), RecordCodec(FinishedStep), noun="finished step")
