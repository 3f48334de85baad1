"""Reservations: jobs that are being accepted, and so count for the quota of their owner before they are known as jobs.

A server reads which jobs have not ended, and then reserves one more. Other servers do the same meanwhile, so the script
counts what they have reserved as well. A reservation ends when its job is known as one. That changes what an earlier
reader has missed, so it is counted (`changes`), and such a reader reads again. A reservation whose server dies ends by
itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from redis import Redis

from parallelrun_core.store import keys
from parallelrun_core.store.scripts import script

_CHANGES: Final = "changes"
_LASTS_S: Final = 120
"""Seconds within which a server creates a job's folder and makes the job known."""
_KEYS_LAST_S: Final = 3_600
_MINUTE_S: Final = 60
_NO_LIMIT: Final = -1


class ReservationResult(StrEnum):
    RESERVED = "reserved"
    CHANGED = "changed"
    """The caller is to read again which jobs have not ended."""
    JOBS = "jobs"
    """The owner has as many jobs as they may have."""
    SUBMISSIONS = "submissions"
    """The owner has submitted as many jobs in this minute as they may."""


@dataclass(frozen=True, kw_only=True)
class Reserving:
    """A job that is to be reserved.

    Args:
        most_jobs: jobs that have not ended; None: any number.
        most_submissions: jobs that are accepted in a minute; None: any number.
        now: seconds since the epoch by Redis' clock, which say what minute it is.
    """

    owner: str
    job_id: str
    most_jobs: int | None
    most_submissions: int | None
    now: float


class Reservations:
    """The reservations of a cluster. Raises redis-py's errors when the server is away.

    Args:
        lasts_s: seconds after which a reservation ends whose server has died.
    """

    def __init__(self, redis: Redis, *, lasts_s: int = _LASTS_S) -> None:
        self._redis: Final = redis
        self._lasts_s: Final = lasts_s
        self._script: Final = script(redis, "reserve")

    def changes(self, owner: str) -> str:
        """Return the count of reservations that have ended, which is read before the owner's jobs are."""
        raw: Any = self._redis.hget(_key(owner), _CHANGES)
        return raw.decode() if raw else ""

    def reserve(self, wish: Reserving, active: Collection[str], changes: str) -> tuple[ReservationResult, int]:
        """Reserve a job; returns the verdict, and how many jobs or submissions there are of the owner.

        A job that is reserved already, or active, is not counted again.

        Args:
            active: the owner's jobs that have not ended.
            changes: what `changes` returned before `active` was read.
        """
        answer: Any = self._script(
            keys=[_key(wish.owner), _minute_key(wish.now)],
            args=[
                wish.job_id, wish.owner, changes, _limit(wish.most_jobs), _limit(wish.most_submissions), self._lasts_s,
                _KEYS_LAST_S, *active,
            ],
        )  # fmt: skip
        return ReservationResult(answer[0].decode()), int(answer[1])

    def confirm(self, owner: str, job_id: str) -> None:
        """End the reservation of a job that is known as one."""
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hdel(_key(owner), job_id)
            pipe.hincrby(_key(owner), _CHANGES, 1)
            pipe.expire(_key(owner), _KEYS_LAST_S)
            pipe.execute()

    def release(self, wish: Reserving) -> None:
        """End the reservation of a job that isn't created after all; it counts as no submission."""
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hdel(_key(wish.owner), wish.job_id)
            if wish.most_submissions is not None:
                pipe.hincrby(_minute_key(wish.now), wish.owner, -1)
                pipe.expire(_minute_key(wish.now), _KEYS_LAST_S)
            pipe.execute()

    def submissions(self, owner: str, now: float) -> int:
        """Return how many jobs of an owner were accepted in the minute of `now`."""
        raw: Any = self._redis.hget(_minute_key(now), owner)
        return int(raw or 0)


def _key(owner: str) -> str:
    return f"{keys.RESERVATIONS}{owner}"


def _minute_key(now: float) -> str:
    return f"{keys.SUBMISSIONS}{int(now // _MINUTE_S)}"


def _limit(most: int | None) -> int:
    return _NO_LIMIT if most is None else most
