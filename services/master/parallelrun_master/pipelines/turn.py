"""A turn of a pipeline: it does what can be done now, and leaves. Nobody leads a pipeline that waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from parallelrun_core.errors import CorruptLog, Fenced, NewerSchema
from parallelrun_core.folder.disk_trouble import is_full, may_pass
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service import failpoints
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.turns import wake, wakes
from parallelrun_core.wire.masking import Mask
from parallelrun_master.leadership import Leadership
from parallelrun_master.pipelines.pipeline_run import PipelineRun
from parallelrun_master.planning.apart import where_is
from parallelrun_master.policy.setbacks import CRASH, FULL, HANG, TROUBLE, Setback
from parallelrun_master.unreadable_job import fail_unreadable_job

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis
    from parallelrun_master.settings import MasterSettings

PATROL_MS: Final = 20_000
"""How long a pipeline that waits is left alone, if nobody wakes it: a wake may have been lost with its sender."""

_SOON_MS: Final = 500


class PipelineTurn:
    """A turn. `run()` returns when nothing is left to do for now, or another process leads the pipeline.

    Args:
        leave: ends the process, even while the leading thread waits for a file system that doesn't answer.
    """

    def __init__(
        self,
        redis: Redis,
        folder: JobFolder,
        record: JobRecord,
        settings: MasterSettings,
        leave: Callable[[], object] = lambda: None,
    ) -> None:
        self._redis = redis
        self._folder = folder
        self._record = record
        self._settings = settings
        self._leave = leave
        self._thread = 0
        self._leadership = Leadership(redis, folder, settings, Mask({}))

    def resign(self) -> None:
        """End the turn soon, so that another master can take the next one. Safe in a signal handler."""
        self._leadership.is_resigning = True

    def run(self) -> None:
        """Take the turn.

        Raises one of `CONNECTION_ERRORS` when Redis is away, and what is a bug.
        """
        leadership, self._thread = self._leadership, threading.get_ident()
        if not leadership.acquire():
            leadership.log.info("already_led")
            return
        failpoints.reach("lead.acquired")
        try:
            with leadership.renewed(self._hung):
                is_to_wait = self._go_on()
                # In here: a beat after the pause has begun would be refused, as it is to be.
            if not is_to_wait:
                leadership.resign()
        except Fenced as error:
            leadership.log.warning("fenced", reason=str(error))
        except NewerSchema as error:
            leadership.log.error("job_too_new", reason=str(error))  # a master of that release can lead it
            leadership.resign()
        except CorruptLog as error:
            leadership.log.error("job_damaged", reason=str(error))
            fail_unreadable_job(self._redis, self._folder, str(error), term=leadership.term)
            leadership.resign()
        except CONNECTION_ERRORS:
            raise  # the next turn continues
        except Exception as error:
            setback = _setback_of(error)
            if setback is CRASH:
                leadership.log.exception("leader_crashed")
            leadership.set_back(setback, f"{type(error).__name__}: {error}" if setback is CRASH else str(error))
            if setback is CRASH:
                raise

    def _go_on(self) -> bool:
        """Do what can be done; returns whether the pipeline waits now. Otherwise, it has ended, or another goes on."""
        led = PipelineRun(self._redis, self._folder, self._record, self._leadership, tracing=self._settings.tracing())
        while not self._leadership.is_resigning:
            wake_count = wakes(self._redis, self._folder.job_id)
            if led.step():
                self._wake_parent()
                led.retire()
                return False
            if self._leadership.wait(_SOON_MS if led.is_pending else PATROL_MS, wake_count):
                return True
        return False

    def _wake_parent(self) -> None:
        if self._record.parent is not None:
            with suppress(*CONNECTION_ERRORS):
                wake(self._redis, self._record.parent.job_id)

    def _hung(self) -> None:
        """The leading thread has been waiting for longer than its lease: end it, so that others can have its place."""
        seconds = self._settings.leader_seconds
        why = f"a file system has not answered for {seconds:g} s, in {where_is(self._thread)}"
        self._leadership.set_back(HANG, why)
        self._leave()


def _setback_of(error: Exception) -> Setback:
    if not isinstance(error, OSError) or not may_pass(error):
        return CRASH
    return FULL if is_full(error) else TROUBLE
