"""The lock of the process that puts a job's output together: one at a time does so, and shows that it is alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parallelrun_core.store.keys import JobKeys

if TYPE_CHECKING:
    from redis import Redis


_LONGEST_MS = 60_000
"""A lock that lasts longer was taken by another clock: that of Redis has been set back since."""


def is_concatenating(redis: Redis, job_id: str) -> bool:
    """Return whether a process that puts the output together is alive, or was a few seconds ago."""
    return 0 <= _lasts_ms(redis, job_id) <= _LONGEST_MS


def acquire_concatenation(redis: Redis, job_id: str, *, ttl_ms: int) -> bool:
    """Take the lock before putting the output together; whether no other process holds it."""
    # Two that begin at the same moment do no harm.
    return bool(redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms, nx=_lasts_ms(redis, job_id) <= _LONGEST_MS))


def renew_concatenation(redis: Redis, job_id: str, *, ttl_ms: int) -> None:
    """Keep the lock: the process that holds it is still alive."""
    redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms)


def release_concatenation(redis: Redis, job_id: str) -> None:
    """Free the lock: the process that held it has ended."""
    redis.delete(JobKeys(job_id).concatenating)


def _lasts_ms(redis: Redis, job_id: str) -> int:
    lasts_ms: Any = redis.pttl(JobKeys(job_id).concatenating)
    return int(lasts_ms)
