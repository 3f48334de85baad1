"""The sign of life of a process that puts a job's output together. One at a time does so for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parallelrun_core.store.keys import JobKeys

if TYPE_CHECKING:
    from redis import Redis


_LONGEST_MS = 60_000
"""What lasts longer was made by another clock: that of Redis was set back since."""


def is_concatenating(redis: Redis, job_id: str) -> bool:
    """Whether a process that puts the output together is alive, or was a few seconds ago."""
    return 0 <= _lasts_ms(redis, job_id) <= _LONGEST_MS


def begin_concatenating(redis: Redis, job_id: str, *, ttl_ms: int) -> bool:
    """A process is about to put the output together; whether no other does."""
    # Two that begin at the same moment do no harm.
    return bool(redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms, nx=_lasts_ms(redis, job_id) <= _LONGEST_MS))


def go_on_concatenating(redis: Redis, job_id: str, *, ttl_ms: int) -> None:
    """The process that puts the output together is still alive."""
    redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms)


def end_concatenating(redis: Redis, job_id: str) -> None:
    """The process that put the output together has ended."""
    redis.delete(JobKeys(job_id).concatenating)


def _lasts_ms(redis: Redis, job_id: str) -> int:
    lasts_ms: Any = redis.pttl(JobKeys(job_id).concatenating)
    return int(lasts_ms)
