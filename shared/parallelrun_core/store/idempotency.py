"""Idempotency keys: a submission that is sent twice becomes one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parallelrun_core.errors import Conflict
from parallelrun_core.store import keys

if TYPE_CHECKING:
    from redis import Redis

_A_DAY_S = 86_400


class IdempotencyKeys:
    """All keys of the last day. Raises redis-py's errors when the server is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def claim(self, key: str, request_sha256: str, job_id: str) -> str:
        """Bind a key to a job for a day; returns the job's id, an earlier one if the key was used.

        Raises:
            Conflict: the key was used for a different request.
        """
        value = f"{request_sha256}:{job_id}"
        held: Any = None
        # In two commands, since Redis 6.2 has no SET with NX and GET; the key may expire in between.
        while held is None:
            if self._redis.set(keys.idempotency(key), value, nx=True, ex=_A_DAY_S):
                return job_id
            held = self._redis.get(keys.idempotency(key))
        sha256, _, earlier = held.decode().partition(":")
        if sha256 != request_sha256:
            raise Conflict("This Idempotency-Key was used for a different request.")
        return str(earlier)

    def release(self, key: str) -> None:
        """Free a key whose submission failed."""
        self._redis.delete(keys.idempotency(key))
