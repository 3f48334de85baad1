"""The concatenation of a finished job: its output is put together, and its leader notified."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NoReturn, TypeVar

import msgspec

from parallelrun_concatenator.bad_places import unreadable
from parallelrun_concatenator.formats import assembler_of
from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import LacksDecisions, SegmentTable
from parallelrun_concatenator.settings import ConcatenatorSettings
from parallelrun_core.errors import Fenced, ParallelRunError
from parallelrun_core.folder.disk_trouble import is_full, may_pass
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import last_closing
from parallelrun_core.folder.session_keys import SessionKey
from parallelrun_core.folder.storage_report import RequestReport
from parallelrun_core.ids import new_session
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.concatenation_lock import acquire_concatenation, release_concatenation, renew_concatenation
from parallelrun_core.store.connection import CONNECTION_ERRORS, Redis, connect
from parallelrun_core.store.heartbeat import cpu_ms_of_others, heartbeat
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.outcome_stream import Concatenated, report_concatenated
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.seals import Seal
from parallelrun_core.wire.outcome import LostRows
from parallelrun_core.wire.states import JobState

_SHOW_EVERY_S = 0.5
_BEAT_S = 1.0
_TTL_MS = 5000
_IDLE_BEATS = 120
"""A slow disk may take so long to write what it was given."""
_PATIENCE_S = 60.0
_MOST_LOST = 50_000
"""Of one report. If there are more, the next one has them."""
_NAME = "concatenator"

Answer = TypeVar("Answer")


class _Stopped(BaseException):
    """The service was told to stop."""


def concatenate(settings: ConcatenatorSettings, job_id: str) -> None:
    """Put the output of a job together, if it is finalizing. Safe to run twice, also at the same time."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        Concatenation(connect(settings.redis_login), JobFolder(settings.root, job_id), leave=lambda: os._exit(1)).run()
    except CONNECTION_ERRORS as error:
        logger(job_id=job_id).warning("redis_away", error=str(error))  # the leader asks again
    except _Stopped:
        pass  # before the work began, or after it was done


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Stopped


class Concatenation:
    """An attempt to put the output of a job together.

    Args:
        leave: ends the process, even while it waits for a volume that doesn't answer.

    Raises one of `CONNECTION_ERRORS` when Redis is away for long, or at the beginning.
    """

    def __init__(self, redis: Redis, folder: JobFolder, leave: Callable[[], object] = lambda: None) -> None:
        self._leave = leave
        self._redis = redis
        self._folder = folder
        self._generation = folder.generation()
        self._registry = Registry(redis)
        self._session = new_session(_NAME)
        self._key = SessionKey(folder.keys, self._session)
        self._log = logger(job_id=folder.job_id)

    def run(self) -> None:
        """Make the output, and report it or the problem to the leader."""
        job_id = self._folder.job_id
        if self._registry.state(job_id) is not JobState.FINALIZING:
            self._log.info("nothing_to_concatenate")
        elif not acquire_concatenation(self._redis, job_id, ttl_ms=_TTL_MS):
            self._log.info("already_concatenating")
        else:
            with self._alive():
                self._conclude()

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Keep the heartbeat alive through long steps that show no progress."""
        job_id = self._folder.job_id
        try:
            with heartbeat(
                lambda: renew_concatenation(self._redis, job_id, ttl_ms=_TTL_MS),
                self._hung,
                every_s=_BEAT_S,
                cpu_used=cpu_ms_of_others,
                hung_after=_IDLE_BEATS,
                beats_while_idle=True,
            ):
                yield
        finally:
            with suppress(*CONNECTION_ERRORS):
                release_concatenation(self._redis, job_id)

    def _hung(self) -> None:
        """No thread has used CPU time for long: end this process, so that another one may get through."""
        self._log.error("concatenation_hangs", beats=_IDLE_BEATS)
        self._leave()

    def _conclude(self) -> None:
        try:
            with RequestReport(self._folder.logs, _NAME):
                failed = self._make()
        except _Stopped:
            self._log.info("concatenation_stopped")
            with suppress(*CONNECTION_ERRORS):
                report_concatenated(self._redis, self._folder.job_id, _POSTPONED)
            return
        except Fenced as error:
            self._log.warning("fenced", reason=str(error))
            return
        except CONNECTION_ERRORS:
            raise  # not a problem of the output: it can be made when Redis is back
        except Exception as error:
            failed = self._trouble(error)
        _patiently(lambda: self._report(failed))

    def _report(self, result: Concatenated) -> None:
        """Report this with a seal, which shows the leader that it comes from a concatenator; without, it is no end."""
        seal = None
        if not result.is_postponed:
            try:
                self._key.publish()
                seal = Seal(self._session, self._key.value)
            except OSError as error:
                self._log.warning("disk_trouble", error=str(error))
                problem = result.problem or f"The output can't be reported: {error}"
                result = Concatenated("", 0, "", problem=problem, is_postponed=True)
        report_concatenated(self._redis, self._folder.job_id, result, seal)

    def _trouble(self, error: Exception) -> Concatenated:
        if isinstance(error, OSError) and is_full(error):
            self._log.warning("disk_full", error=str(error))
            return _POSTPONED
        if isinstance(error, OSError) and may_pass(error):
            self._log.warning("disk_trouble", error=str(error))
            lost: list[LostRows] = []
            with suppress(OSError, ParallelRunError):
                lost = unreadable(error, SegmentTable(self._folder.path), self._folder.parts)
            if lost:
                return self._damaged(str(error), lost)
            problem = f"The output can't be put together: {error}"
            return Concatenated("", 0, "", problem=problem, is_postponed=True)
        if isinstance(error, OSError | ParallelRunError):
            self._log.error("concatenation_failed", error=str(error))
            return self._failed(error, str(error))
        self._log.exception("concatenation_crashed")
        return self._failed(error, f"{type(error).__name__}: {error}")

    def _failed(self, error: Exception, why: str) -> Concatenated:
        """The report of an output that can't be made of what is there, with what the leader can have made again."""
        lost: list[LostRows] = []
        lacks_decisions = isinstance(error, LacksDecisions)
        if not lacks_decisions:
            with suppress(OSError, ParallelRunError):
                lost = list(islice(SegmentTable(self._folder.path).lost(self._folder.parts), _MOST_LOST))
        return self._damaged(why, lost, lacks_decisions=lacks_decisions)

    def _damaged(self, why: str, lost: list[LostRows], *, lacks_decisions: bool = False) -> Concatenated:
        if lost:
            self._log.error("rows_lost", mini_batches=len(lost), first=lost[0].mini_batch, part=lost[0].part)
        problem = f"The output can't be put together: {why}"
        return Concatenated(
            "", 0, "", problem=problem, lost=lost, lacks_decisions=lacks_decisions, generation=self._generation
        )

    def _make(self) -> Concatenated:
        job_id, folder = self._folder.job_id, self._folder
        queue = LeaderQueue(self._redis, job_id)
        progress = self._registry.status(job_id).progress
        shown_at = 0.0

        def show(length: int) -> None:
            nonlocal shown_at
            now = time.monotonic()
            if now >= shown_at + _SHOW_EVERY_S:
                shown_at = now
                progress.bytes_concatenated = length
                text = msgspec.json.encode(progress)
                with suppress(*CONNECTION_ERRORS):  # only those who watch need this
                    queue.show({"progress": text}, event=("progress", text))

        began = time.monotonic()
        record = folder.record()
        spec = record.job_spec()
        target = folder.output_file(spec)
        table = SegmentTable(folder.path)
        table.check_complete(last_closing(folder.path))
        progress.bytes_to_concatenate = table.bytes
        assembler = assembler_of(spec, target, table, folder.parts)
        merged = merge(
            table.in_order(), folder.parts, target, show, assembler,
            before_publishing=self._earlier_outputs, rule=folder.path_rule(record),
        )  # fmt: skip
        seconds = round(time.monotonic() - began, 3)
        self._log.info("concatenated", segments=len(table), bytes=merged.length, seconds=seconds)
        return Concatenated(target, merged.length, merged.sha256, notes=[*assembler.notes], generation=self._generation)

    def _earlier_outputs(self) -> set[str]:
        self._check_still_wanted()
        return self._folder.published()

    def _check_still_wanted(self) -> None:
        """A process that was paused may finish long after another one has made the output, or a later one."""
        state = _patiently(lambda: self._registry.state(self._folder.job_id))
        if state is not JobState.FINALIZING or self._folder.generation() != self._generation:
            raise Fenced("the job no longer waits for this output")


_POSTPONED = Concatenated("", 0, "", is_postponed=True)


def _patiently(ask: Callable[[], Answer]) -> Answer:
    """Return what Redis answers, even if it is away just now: a large output should not be made twice for that."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return ask()
        except CONNECTION_ERRORS:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # there is no event for a server that comes back
