"""The lease of a leader on its job: drawn, renewed, held while Redis is away, and given back."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from parallelrun_core.errors import Fenced
from parallelrun_core.folder.decisions import NAME as DECISIONS
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import NAME as MANIFEST
from parallelrun_core.folder.term_log import terms
from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.connection import CONNECTION_ERRORS, ServerReplaced, server_run_id
from parallelrun_core.store.heartbeat import heartbeat, own_cpu_clock
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_master.planning.apart import where_is
from parallelrun_master.policy.stages import Stage, TermStages

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.settings import MasterSettings

_TICK_S = 0.5
_TICKS_PER_LEASE = 10
_BEATS_PER_LEASE = 5
_AWAY_S = 60.0


class Leadership:
    """The right to lead one job for one term, from `acquire()` until it is given back or lost."""

    def __init__(self, redis: Redis, folder: JobFolder, settings: MasterSettings) -> None:
        self.queue = LeaderQueue(redis, folder.job_id)
        self.log = logger(job_id=folder.job_id)
        self.stages = TermStages()
        self.is_resigning = False
        """Whether the process was asked to leave this to another one."""
        self.durable_before = 0
        """How much earlier terms have made durable, as far as this one has read: decisions, and mini-batches."""
        self._redis = redis
        self._folder = folder
        self._settings = settings
        self._token = secrets.token_hex(16)
        self._server_run_id = ""
        self._tick = Every(min(_TICK_S, min(settings.leader_seconds, settings.lease_seconds) / _TICKS_PER_LEASE))

    @property
    def term(self) -> int:
        """The number of this time as leader; 0 before it is drawn."""
        return self.queue.term

    def acquire(self) -> bool:
        """Draw a term; False while another process leads."""
        if not self.queue.acquire(self._token, ttl_ms=self._settings.leader_ms, folder_term=self._highest_term()):
            self.stages.enter(Stage.TURNED_AWAY)
            self.log.info("already_led")
            return False
        self.log = self.log.bind(term=self.term)
        self._server_run_id = server_run_id(self._redis)
        self.stages.enter(Stage.RECOVERING)
        return True

    def _highest_term(self) -> int:
        """The highest term that has a file."""
        return max([0, *terms(self._folder.path, DECISIONS), *terms(self._folder.path, MANIFEST)])

    def renewed(self, hung: Callable[[str], object]) -> AbstractContextManager[None]:
        """While this lasts, leadership is renewed as long as the calling thread does something.

        Args:
            hung: called with the reason, once that thread has done nothing for a whole lease.
        """
        lease_s, thread = self._settings.leader_seconds, threading.get_ident()

        def report() -> None:
            hung(f"a file system has not answered for {lease_s:g} s, in {where_is(thread)}")

        every_s = lease_s / _BEATS_PER_LEASE
        return heartbeat(self.renew, report, every_s=every_s, cpu_used=own_cpu_clock(), hung_after=_BEATS_PER_LEASE)

    def renew(self) -> None:
        """Renew leadership.

        Raises:
            Fenced: another term has begun.
        """
        self.queue.renew(self._token, ttl_ms=self._settings.leader_ms)

    def tick(self, now: float) -> bool:
        """Return whether it is time for what is done a few times a second; leadership has then been renewed.

        Raises:
            Fenced: another term has begun.
            ServerReplaced: Redis may have forgotten something; one of `CONNECTION_ERRORS`.
        """
        if not self._tick.is_due(now):
            return False
        self.renew()
        self.check_server()
        return True

    def check_server(self) -> None:
        """Make sure that Redis has not been restarted since this term began, or since it was last away.

        A connection that broke while nobody used it is replaced without an error, by redis-py's pool or by a proxy.

        Raises:
            ServerReplaced: it has.
        """
        if server_run_id(self._redis) != self._server_run_id:
            raise ServerReplaced("Redis was restarted")

    def ms_to_tick(self, now: float) -> int:
        """Milliseconds until the next tick: how long a leader with nothing else to do may wait for entries."""
        return max(1, int(1000 * self._tick.wait_s(now)))

    def wait_for_redis(self, error: Exception) -> bool:
        """Redis is away: wait until it answers, or the leader resigns; returns whether it may have forgotten something.

        Raises:
            Fenced: another process leads by now, or Redis doesn't come back.
        """
        self.log.warning("redis_away", error=str(error))
        until = time.monotonic() + _AWAY_S
        while not self.is_resigning:
            try:
                run_id = server_run_id(self._redis)
                self.renew()
            except CONNECTION_ERRORS as again:
                if time.monotonic() > until:
                    raise Fenced("Redis doesn't come back") from again
                time.sleep(0.1)  # there is no event for a server that comes back
                continue
            was_restarted = run_id != self._server_run_id
            if was_restarted and self._highest_term() > self.term:
                raise Fenced("Redis has forgotten a later term")
            self._server_run_id = run_id
            self.log.info("redis_back", run_id=run_id)
            return was_restarted
        return False

    def resign(self, *, pause_ms: int = 0) -> None:
        """Let another process lead, at once or after a pause."""
        self.queue.resign(self._token, pause_ms=pause_ms)

    def wait(self, pause_ms: int, wakes: int) -> bool:
        """Leave the job alone until it is woken; False if it was, since it had been woken so often."""
        return self.queue.wait(self._token, pause_ms=pause_ms, wakes=wakes)
