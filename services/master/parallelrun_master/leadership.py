"""The lease of a leader on its job: drawn, renewed, held while Redis is away, and given back."""

from __future__ import annotations

import errno
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import Conflict, CorruptLog, Fenced, NewerSchema, NotFound
from parallelrun_core.folder.decisions import NAME as DECISIONS
from parallelrun_core.folder.disk_trouble import is_full, may_pass
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import NAME as MANIFEST
from parallelrun_core.folder.records import JobResult
from parallelrun_core.folder.term_log import terms
from parallelrun_core.intake.reopening import knows_only_earlier_end, queue_again
from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.connection import CONNECTION_ERRORS, ServerReplaced, server_run_id
from parallelrun_core.store.heartbeat import heartbeat, own_cpu_clock
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.states import JobState
from parallelrun_master.planning.apart import where_is
from parallelrun_master.policy import setbacks
from parallelrun_master.policy.setbacks import CRASH, FULL, HANG, TROUBLE, Setback
from parallelrun_master.policy.stages import Stage, TermStages

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.settings import MasterSettings

_TICK_S = 0.5
_TICKS_PER_LEASE = 10
_BEATS_PER_LEASE = 5
_AWAY_S = 60.0


class Leadership:
    """The right to lead one job for one term, from `acquire()` until it is given back or lost.

    Args:
        mask: hides secrets in what is reported when it can't be kept.
    """

    def __init__(self, redis: Redis, folder: JobFolder, settings: MasterSettings, mask: Mask) -> None:
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
        self._mask = mask
        self._registry = Registry(redis)
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

    def renewed(self, leave: Callable[[], object]) -> AbstractContextManager[None]:
        """While this lasts, leadership is renewed as long as the calling thread does something.

        Args:
            leave: ends the process, when that thread has done nothing for a whole lease: others can have its place.
        """
        lease_s, thread = self._settings.leader_seconds, threading.get_ident()

        def hung() -> None:
            self.set_back(HANG, f"a file system has not answered for {lease_s:g} s, in {where_is(thread)}")
            leave()

        every_s = lease_s / _BEATS_PER_LEASE
        return heartbeat(self.renew, hung, every_s=every_s, cpu_used=own_cpu_clock(), hung_after=_BEATS_PER_LEASE)

    @contextmanager
    def ended_by_errors(
        self,
        fail_damaged: Callable[[str], object],
        setback_of: Callable[[Exception], Setback],
        *,
        limit_s: float = inf,
    ) -> Iterator[None]:
        """While this lasts, the term ends as an error asks for. Raises one of `CONNECTION_ERRORS`, and what is a bug.

        Args:
            fail_damaged: fails the job, of which something can't be read, for this reason.
            limit_s: as for `set_back`.
        """
        try:
            yield
        except Fenced as error:
            self.stages.enter(Stage.FENCED)
            self.log.warning("fenced", reason=str(error))
        except NewerSchema as error:
            self.stages.enter(Stage.RESIGNED)
            self.log.error("job_too_new", reason=str(error))  # a master of that release can lead it
            self.resign()
        except CorruptLog as error:
            self.stages.enter(Stage.SET_BACK)
            fail_damaged(str(error))
            self.resign()
        except CONNECTION_ERRORS:
            self.stages.enter(Stage.CUT_OFF)
            raise  # the next leader continues
        except Exception as error:
            self.stages.enter(Stage.SET_BACK)
            setback = setback_of(error)
            if setback is CRASH:
                self.log.exception("leader_crashed")
            self.set_back(setback, words_of(error, setback), limit_s=limit_s)
            if setback is CRASH:
                raise

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

    def check_end(self) -> None:
        """Make sure that the end of the job, as Redis knows it, is that of its present generation.

        Raises:
            Fenced: it isn't. The job is queued again, for whoever leads it next.
        """
        if knows_only_earlier_end(self._registry, self._folder):
            with suppress(Conflict):  # somebody else was faster
                queue_again(self._registry, self._folder)
            raise Fenced("Redis had forgotten that the job was reopened")

    def recorded_end(self) -> JobResult | None:
        """Return how the job has ended, in the generation that Redis was told of; None while it hasn't.

        Raises:
            OSError: this node doesn't see yet that a later generation has begun. On NFS, that may take a minute.
        """
        if (result := self._folder.result()) is None:
            return None
        with suppress(NotFound):  # Redis has forgotten the job
            begun = self._registry.status(self._folder.job_id)
            if not begun.state.is_terminal and begun.generation > self._folder.generation():
                why = f"generation {begun.generation} has begun, and can't be seen here yet"
                raise OSError(errno.ESTALE, why, str(self._folder.path))
        return result

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

    def resign(self) -> None:
        """Let another process lead at once."""
        self.queue.resign(self._token)

    def wait(self, pause_ms: int, wakes: int) -> bool:
        """Leave the job alone until it is woken; False if it was, since it had been woken so often."""
        return self.queue.wait(self._token, pause_ms=pause_ms, wakes=wakes)

    def set_back(self, setback: Setback, why: str, limit_s: float = inf) -> None:
        """This term can't continue: let another process lead after a pause, or fail the job. Touches no file.

        Args:
            limit_s: how long a setback that is limited in time may come again and again.
        """
        why = self._mask.printable(why)
        count = self.queue.count_setback(setback.kind, mark=self.durable_before)
        lasted_s = self.queue.set_back_for_s(setback.kind)
        failure, pause_s = setback.failure(count, why, lasted_s, limit_s), setbacks.pause_s(count)
        self.log.warning(setback.kind, count=count, reason=why, pause_s=pause_s)
        error = {"category": setback.code, "message": why, "traceback": "", "count": count}
        self.queue.announce("error", msgspec.json.encode(error))
        if failure is not None:
            with suppress(Conflict, Fenced, NotFound):
                self._registry.move(self._folder.job_id, JobState.FAILED, failure, term=self.term)
                pause_s = 0  # so that its end is recorded
        self.queue.resign(self._token, pause_ms=round(1000 * pause_s))


def common_setback(error: Exception) -> Setback:
    """Return which kind of setback an error is in a term of any kind."""
    if not isinstance(error, OSError) or not may_pass(error):
        return CRASH  # a bug of ours: another leader may get through
    return FULL if is_full(error) else TROUBLE


def words_of(error: Exception, setback: Setback) -> str:
    return f"{type(error).__name__}: {error}" if setback is CRASH else str(error)
