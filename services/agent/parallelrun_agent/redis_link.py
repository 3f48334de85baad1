"""The agent's connection with Redis: whether it is up, when to try again, and how long an answer may take."""

from __future__ import annotations

from collections.abc import Iterable

from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.connection import ServerUnable, connect_directly

log = logger()

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_ANSWER_S = 5.0
_LEAST_ANSWER_S = 0.02


class RedisLink:
    """The connection of an agent. For the agent's one thread alone."""

    def __init__(self, url: str) -> None:
        self.redis = connect_directly(url)
        self.is_up = True
        """Whether the last attempt succeeded."""
        self.failures = 0
        """How many attempts in a row have failed."""
        self.retry_at = 0.0
        """Not before then is it asked again, after it has failed."""
        self._silent_since: float | None = None
        self._pause = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._limit_s = 0.0
        self._limit_until = 0.0

    def failed(self, error: Exception, now: float) -> None:
        """Redis didn't answer, or can't do its work for now."""
        if self.is_up:
            log.warning("redis_away", error=str(error))
        if isinstance(error, ServerUnable):
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        self.retry_at = now + self._pause.next_s()
        self.failures += 1
        self.is_up = False

    def recovered(self, run_id: str) -> None:
        """Redis does its work again, which may be another server."""
        log.info("redis_back", run_id=run_id, failures=self.failures)
        self._pause.reset()
        self._silent_since = None
        self.failures = 0
        self.is_up = True

    def silent_s(self, now: float) -> float:
        """For how long no attempt has got an answer, be it that the server can't do its work for now; 0: the last one
        has.
        """
        return 0.0 if self._silent_since is None else now - self._silent_since

    def limit_wait(self, jobs: Iterable[NodeJob], now: float) -> None:
        """No call may outlast a lease: while the agent waits, it can't end the workers of one that runs out."""
        if now < self._limit_until:
            return
        lease_left_s = min([job.lease_left_s(now) for job in jobs if job.workers], default=_ANSWER_S)
        self._limit_until = now + lease_left_s - _ANSWER_S
        limit_s = max(_LEAST_ANSWER_S, min(_ANSWER_S, lease_left_s))
        if limit_s != self._limit_s:
            self.redis.limit_wait(limit_s)
            self._limit_s = limit_s

    def forget_limit(self) -> None:
        """Work out anew, before the next call, how long it may take: the jobs that have workers may be others."""
        self._limit_until = 0.0
