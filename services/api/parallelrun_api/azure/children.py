"""The steps of a job, as jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from parallelrun_core.errors import NotFound

if TYPE_CHECKING:
    from parallelrun_api.azure.face import Face
    from parallelrun_api.models import Job

_OF_BATCH: Final = "batchscoring"
"""What the service calls the only step of what a batch endpoint has made."""


def children_of(face: Face, job: Job, name: str) -> Iterator[tuple[Job, str]]:
    """The steps of a job that have been started, with their names.

    A document with one parallel step is one job here: asked for by the name that its client has given to it, it has
    itself as its only step, by its id. So has what a batch endpoint has made.
    """
    for step in job.steps:
        if step.job:
            with suppress(NotFound):
                yield face.context.jobs.get(step.job), step.name
    if job.spec.get("type") != "pipeline":
        remembered = face.names.of(job.id)
        sent = remembered.get("sent") or {}
        if remembered.get("is_batch"):
            yield job, _OF_BATCH
        elif name != job.id and sent.get("jobType") == "Pipeline":
            yield job, next(iter(sent.get("jobs") or {}), "")
