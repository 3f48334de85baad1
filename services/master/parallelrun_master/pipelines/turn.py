"""A turn of a pipeline: it does what can be done now, and leaves. Nobody leads a pipeline that waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service import failpoints
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.turns import wake, wakes
from parallelrun_core.wire.masking import Mask
from parallelrun_master.leadership import Leadership
from parallelrun_master.pipelines.pipeline_run import PipelineRun
from parallelrun_master.term_end import TermEnd
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
        self._leadership = Leadership(redis, folder, settings)

    def resign(self) -> None:
        """End the turn soon, so that another master can take the next one. Safe in a signal handler."""
        self._leadership.is_resigning = True

    def run(self) -> None:
        """Take the turn.

        Raises one of `CONNECTION_ERRORS` when Redis is away, and what is a bug.
        """
        leadership = self._leadership
        if not leadership.acquire():
            return
        failpoints.reach("lead.acquired")
        term_end = TermEnd(self._redis, leadership, Mask({}))
        with term_end.at_error(self._fail_damaged):
            with term_end.at_hang(self._leave):
                is_to_wait = self._go_on()
                # In here: a beat after the pause has begun would be refused, as it is to be.
            if not is_to_wait:
                leadership.resign()

    def _fail_damaged(self, why: str) -> None:
        self._leadership.log.error("job_damaged", reason=why)
        fail_unreadable_job(self._redis, self._folder, why, term=self._leadership.term)

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
