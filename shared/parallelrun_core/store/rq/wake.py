"""Puts jobs into the queues: ask for a leader, ask for an output, and see what became of that.

RQ's defaults would hurt here: pickle on the wire, and a timeout of 180 s that kills leaders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from redis import Redis
from rq.exceptions import InvalidJobOperation
from rq.job import JobStatus

from parallelrun_core.store.fast_path import Command, in_one_step
from parallelrun_core.store.rq.entries import CONCATENATE, LEAD, EntryKind, new_entry, queue

_FIRST: Final = "0"


def ask_for_leader(redis: Redis, job_id: str, *, attempt: str = _FIRST) -> None:
    """Let a master lead the job. However often this is called, the job has at most one leader."""
    _wake(redis, LEAD, job_id, f"lead-{job_id}-{attempt}")


def asking_for_first_leader(job_id: str) -> Iterator[Command]:
    """Yield the commands that let a master lead a job that is new.

    No earlier entry is looked for. If there is one, the entry comes twice, and whoever gets it then finds that the job
    is led.
    """
    return new_entry(LEAD, job_id, f"lead-{job_id}-{_FIRST}")


def waiting_for_leader(redis: Redis) -> set[str]:
    """The jobs that wait in the queue until a master has a place for their leaders, or for their next turns."""
    return {entry_id.removeprefix("lead-").partition("-")[0] for entry_id in queue(redis, LEAD).job_ids}


class LeadQueue(NamedTuple):
    """The masters' places for leaders, and the place of a job that waits for one."""

    masters: int
    """Places for leaders, each of which leads one job at a time."""
    busy: int
    """Places that are taken."""
    before: int | None
    """Jobs before this one in the queue; None: it is not in the queue."""


def lead_queue(redis: Redis, job_id: str) -> LeadQueue:
    """Return how the masters' places stand, and which place in the queue a job has."""
    raw: Any = redis.smembers(f"rq:workers:{LEAD.queue}")
    with redis.pipeline(transaction=False) as pipe:
        for name in raw:
            pipe.hget(name, "state")
        states = [state for state in pipe.execute() if state]  # those that have died leave only their names
    ids = queue(redis, LEAD).job_ids
    before = next((place for place, each in enumerate(ids) if each.startswith(f"lead-{job_id}-")), None)
    return LeadQueue(len(states), sum(state == b"busy" for state in states), before)


def ask_for_turn(redis: Redis, job_id: str, *, term: int) -> None:
    """Let a master take the next turn of a pipeline, before it leads any job that waits: turns are short.

    Args:
        term: the one of its last turn.
    """
    entry_id = f"lead-{job_id}-after-{term}"
    earlier = queue(redis, LEAD).fetch_job(entry_id)
    if earlier is None or earlier.get_status(refresh=False) != JobStatus.STARTED:  # else it is about to draw its term
        _wake(redis, LEAD, job_id, entry_id, is_first=True)


def ask_for_concatenation(redis: Redis, job_id: str, *, attempt: str, is_new: bool = False) -> None:
    """Let a concatenator put the job's output together. Running it twice gives the same bytes.

    Args:
        is_new: nobody has asked for this attempt, so no earlier entry is looked for.
    """
    entry_id = _concatenation_id(job_id, attempt)
    if is_new:
        in_one_step(redis, new_entry(CONCATENATE, job_id, entry_id))
    else:
        _wake(redis, CONCATENATE, job_id, entry_id)


def has_concatenation_failed(redis: Redis, job_id: str, *, attempt: str) -> bool:
    """Return whether RQ has seen the process of this attempt die; it takes much longer when the RQ worker has died,
    too."""
    rq_job = queue(redis, CONCATENATE).fetch_job(_concatenation_id(job_id, attempt)) if attempt else None
    return rq_job is not None and rq_job.get_status(refresh=False) in (
        JobStatus.FAILED,
        JobStatus.STOPPED,
        JobStatus.CANCELED,
    )


def is_concatenation_waiting(redis: Redis, job_id: str, *, attempt: str) -> bool:
    """Return whether this attempt is still in the queue: no concatenator has taken it."""
    rq_job = queue(redis, CONCATENATE).fetch_job(_concatenation_id(job_id, attempt)) if attempt else None
    return rq_job is not None and rq_job.get_status(refresh=False) == JobStatus.QUEUED


def _concatenation_id(job_id: str, attempt: str) -> str:
    return f"concatenate-{job_id}-{attempt}"


def _wake(redis: Redis, kind: EntryKind, job_id: str, entry_id: str, *, is_first: bool = False) -> None:
    target = queue(redis, kind)
    earlier = target.fetch_job(entry_id)
    if earlier is not None:
        if earlier.get_status(refresh=False) == JobStatus.QUEUED:  # as fetched: it may end and vanish meanwhile
            if target.get_job_position(entry_id) is None:
                target.push_job_id(entry_id)  # a worker took it: it is about to start it, or died with it
            return
        # The process that ran it has died, or it wouldn't be asked for again.
        try:
            earlier.delete()
        except (
            ValueError,
            InvalidJobOperation,
        ):  # Redis was wiped meanwhile, and that process has written only a part of it again
            redis.delete(earlier.key)
    in_one_step(redis, new_entry(kind, job_id, entry_id, is_first=is_first))
