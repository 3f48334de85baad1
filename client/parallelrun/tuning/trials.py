"""Runs a job on a cluster of this machine for a short time, and looks at how that went."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from parallelrun.errors import Conflict, InvalidInput, JobFailed
from parallelrun_core.adviser.reading.evidence import evidence_of
from parallelrun_core.adviser.trial import Trial
from parallelrun_core.folder.job_folder import job_folder
from parallelrun_core.spec import JobSpec, set_field
from parallelrun_core.spec.fields import Output
from parallelrun_core.spec.notify import Notified

if TYPE_CHECKING:
    from pathlib import Path

    from parallelrun.client import Client
    from parallelrun.models import Job

_POLL_S: Final = 0.1
_MOST_TIMES: Final = 10
"""A trial waits so many times longer for its first mini-batch, or for the end of the listing."""
_END_S: Final = 60.0
_FIRST_SIZE: Final = 1
"""Of a job that would choose its size by itself."""


@dataclass(frozen=True)
class Tried:
    """Some settings, and what the job would take with them."""

    changes: Mapping[str, str]
    """Fields of the job file with their new values; none: as the job has them."""
    trial: Trial
    is_listed: bool
    """True if all of the input was listed, so that the trial is about all of it."""


def spec_of_trial(spec: JobSpec, processes: int, changes: Mapping[str, str]) -> JobSpec:
    """The job for a trial: with these changes, on one node, and what it writes goes to a folder of the trial.

    Raises:
        InvalidInput: it has no mini-batches that could be tried.
    """
    if spec.command or spec.rank_mini_batch_count:
        raise InvalidInput.at("", "only a job with mini-batches of data can be tuned; this one has none")
    trial_spec = spec.model_copy(
        update={
            "output": "",
            "outputs": {name: Output(type=each.type, file_name=each.file_name) for name, each in spec.outputs.items()},
            **dict.fromkeys(Notified.model_fields),
            "resume_from": "",
            "max_concurrency_per_instance": spec.max_concurrency_per_instance or processes,
            **({"instance_count": 1} if spec.instance_count is not None else {}),
            # What a size is worth is seen where all mini-batches have it, and the total is known.
            **({"mini_batch_size": _FIRST_SIZE} if spec.size.is_auto else {}),
        }
    )
    document = trial_spec.model_dump(mode="json", exclude_defaults=True)
    for name, value in changes.items():
        set_field(document, f"{name}={value}")
    return JobSpec.parse(document)


def tried(client: Client, root: Path, spec: JobSpec, changes: Mapping[str, str], *, seconds: float) -> Tried:
    """Run a trial of about so long from its first mini-batch on.

    Raises:
        JobFailed: the job has failed by itself.
        InvalidInput: nothing of it was done in ten times as long.
    """
    job = client.jobs.create(spec, upload_code=False)
    try:
        job = _after(client, job, seconds)
    finally:
        with suppress(Conflict):  # it has ended
            client.jobs.cancel(job.id)
        ended = client.jobs.wait(job.id, timeout_s=_END_S, raise_on_failure=False, progress=False)
    if ended.state == "failed":
        raise JobFailed(ended, logs=job_folder(root, job.id).logs)
    evidence = evidence_of(job_folder(root, job.id))
    if not len(evidence.tries):
        message = f"no mini-batch was done in {_MOST_TIMES * seconds:g} s"
        raise InvalidInput.at(
            "mini_batch_size", message, "give trials more time (--trial), or make mini-batches smaller"
        )
    return Tried(changes, Trial(evidence, ended.progress.scheduled), ended.progress.listing_done)


def _after(client: Client, job: Job, seconds: float) -> Job:
    """The job when it has ended, or has run long enough to be looked at."""
    last, first = time.monotonic() + _MOST_TIMES * seconds, 0.0
    while not job.has_ended and (now := time.monotonic()) < last:
        if not first and job.progress.done:
            first = now
        if first and now - first >= seconds and job.progress.listing_done:
            break
        time.sleep(_POLL_S)
        job = client.jobs.get(job.id)
    return job
