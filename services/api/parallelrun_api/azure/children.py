"""The steps of a job, as jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from parallelrun_api.azure.facade import Facade
from parallelrun_api.endpoints.service import is_made_by
from parallelrun_core.answers.jobs import Job
from parallelrun_core.errors import NotFound

_OF_BATCH: Final = "batchscoring"
"""What the service calls the only step of what a batch endpoint has made."""


@dataclass(frozen=True)
class ChildStep:
    """The step of a pipeline that a job is."""

    name: str
    pipeline: str
    """The name by which the client of the pipeline calls it."""
    sent: Mapping[str, Any] = field(default_factory=dict)
    """The pipeline as its client has sent it; empty: another one has submitted it."""
    jobs: Mapping[str, str] = field(default_factory=dict)
    """The ids of the jobs of the pipeline's steps that have one."""

    @property
    def node(self) -> Mapping[str, Any]:
        """The step as the client has sent it; empty: it is in a component, or nobody knows."""
        node = (self.sent.get("jobs") or {}).get(self.name)
        return node if isinstance(node, Mapping) else {}

    @property
    def experiment(self) -> str:
        return str(self.sent.get("experimentName") or "")

    @property
    def compute(self) -> str:
        """The id of the compute that the client has named for it; empty: none."""
        of_all = (self.sent.get("settings") or {}).get("default_compute") or self.sent.get("computeId")
        compute = str(self.node.get("computeId") or of_all or "")
        return "" if compute.startswith("${{") else compute


def step_of(facade: Facade, job: Job, name: str, pipeline: Job | None = None) -> ChildStep | None:
    """The step that a job is, as it is called by a client; None if it is none.

    A document with one parallel step is one job here: asked for by its id, it is its only step.

    Args:
        pipeline: the job's, if it is known already.
    """
    if job.parent is not None:
        remembered = facade.names.of(job.parent.job)
        with suppress(NotFound):
            steps = (pipeline or facade.context.jobs.get(job.parent.job)).steps
            jobs = {step.name: step.job for step in steps if step.job}
            return ChildStep(
                job.parent.step, remembered.get("name") or job.parent.job, remembered.get("sent") or {}, jobs
            )
    remembered = facade.names.of(job.id)
    sent = remembered.get("sent") or {}
    if name == job.id and remembered.get("name") and _is_of_one_step(job, sent):
        return ChildStep(next(iter(sent.get("jobs") or {}), ""), remembered["name"], sent)
    return None


def children_of(facade: Facade, job: Job, name: str) -> Iterator[tuple[Job, str]]:
    """The steps of a job that have been started, each with the name that the service shows in place of its own.

    A document with one parallel step is one job here: asked for by the name that its client has given to it, it has
    itself as its only step, by its id. So has what a batch endpoint has made.
    """
    for step in job.steps:
        if step.job:
            with suppress(NotFound):
                yield facade.context.jobs.get(step.job), ""
    remembered = facade.names.of(job.id)
    if is_made_by(job.notes) and job.spec.get("type") != "pipeline":
        yield job, _OF_BATCH
    elif name != job.id and _is_of_one_step(job, remembered.get("sent") or {}):
        yield job, ""


def _is_of_one_step(job: Job, sent: Mapping[str, Any]) -> bool:
    return job.spec.get("type") != "pipeline" and sent.get("jobType") == "Pipeline"
