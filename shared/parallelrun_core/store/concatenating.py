"""The sign of life of a process that puts a job's output together. One at a time does so for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parallelrun_core.store.keys import JobKeys

if TYPE_CHECKING:
    from redis import Redis


def begin_concatenating(redis: Redis, job_id: str, *, ttl_ms: int) -> bool:
    """A process is about to put the output together; whether no other does."""
    return bool(redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms, nx=True))


def go_on_concatenating(redis: Redis, job_id: str, *, ttl_ms: int) -> None:
    """The process that puts the output together is still alive."""
    redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms)


def end_concatenating(redis: Redis, job_id: str) -> None:
    """The process that put the output together has ended."""
    redis.delete(JobKeys(job_id).concatenating)
