"""The RQ queues of the two idempotent steps that go through RQ: lead a job, put its output together.

RQ's defaults would hurt here: pickle on the wire, and a job timeout of 180 s that kills leaders. So both sides get
their queue from this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rq import Queue
from rq.job import JobStatus
from rq.serializers import JSONSerializer

if TYPE_CHECKING:
    from redis import Redis

LEADER_QUEUE = "jobs"
"""One entry starts one leader."""
CONCATENATE_QUEUE = "concatenate"
"""One entry puts one job's output together."""
_LEAD = "parallelrun_master.lead.lead"
_CONCATENATE = "parallelrun_concatenator.concatenate.concatenate"
_NO_TIMEOUT = -1
_KEEP_FAILED_S = 3600


def queue(redis: Redis, name: str) -> Queue:
    """An RQ queue that never pickles."""
    return Queue(name, connection=redis, serializer=JSONSerializer)


def ask_for_leader(redis: Redis, job_id: str, *, attempt: str = "0") -> None:
    """Let a master lead the job. However often this is called, the job has at most one leader."""
    _enqueue(redis, LEADER_QUEUE, _LEAD, job_id, f"lead-{job_id}-{attempt}")


def ask_for_concatenation(redis: Redis, job_id: str, *, attempt: str) -> None:
    """Let a concatenator put the job's output together. Running it twice gives the same bytes."""
    _enqueue(redis, CONCATENATE_QUEUE, _CONCATENATE, job_id, _concatenation_id(job_id, attempt))


def concatenation_failed(redis: Redis, job_id: str, *, attempt: str) -> bool:
    """Whether RQ has seen the process of this attempt die; it takes much longer when the RQ worker has died, too."""
    asked = queue(redis, CONCATENATE_QUEUE).fetch_job(_concatenation_id(job_id, attempt)) if attempt else None
    return asked is not None and asked.get_status(refresh=False) in (
        JobStatus.FAILED,
        JobStatus.STOPPED,
        JobStatus.CANCELED,
    )


def concatenation_waits(redis: Redis, job_id: str, *, attempt: str) -> bool:
    """Whether this attempt is still in the queue: no concatenator has taken it."""
    asked = queue(redis, CONCATENATE_QUEUE).fetch_job(_concatenation_id(job_id, attempt)) if attempt else None
    return asked is not None and asked.get_status(refresh=False) == JobStatus.QUEUED


def _concatenation_id(job_id: str, attempt: str) -> str:
    return f"concatenate-{job_id}-{attempt}"


def _enqueue(redis: Redis, name: str, function: str, job_id: str, rq_id: str) -> None:
    target = queue(redis, name)
    earlier = target.fetch_job(rq_id)
    if earlier is not None:
        if earlier.get_status(refresh=False) == JobStatus.QUEUED:  # as fetched: it may end and vanish meanwhile
            if target.get_job_position(rq_id) is None:
                target.push_job_id(rq_id)  # a worker took it: it is about to start it, or died with it
            return
        earlier.delete()  # the process that ran it has died, or it wouldn't be asked for again
    target.enqueue(
        function,
        job_id,
        job_id=rq_id,
        job_timeout=_NO_TIMEOUT,
        result_ttl=0,
        failure_ttl=_KEEP_FAILED_S,
        description=f"{function} {job_id}",
    )
