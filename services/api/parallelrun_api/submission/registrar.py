"""Makes every accepted job known to Redis, however long that takes."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import suppress
from typing import Final

from anyio import from_thread
from anyio.to_thread import run_sync

from parallelrun_api.submission.submissions import Accepted, Submissions
from parallelrun_api.views.jobs import JobReader
from parallelrun_core.folder.job_folder import abandoned
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.layout import code_store
from parallelrun_core.service import telemetry
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.store.connection import RedisError
from parallelrun_core.store.registry import Registry

log = telemetry.logger()

_ABANDONED_S: Final = 3600
_CLEAN_UP_S: Final = 3600


class Registrar:
    """Registers accepted jobs: at once when Redis is up, in the background when it isn't."""

    def __init__(self, submissions: Submissions, jobs: JobReader, registry: Registry) -> None:
        self._submissions = submissions
        self._jobs = jobs
        self._registry = registry
        self._left: list[str] = []
        self._skipped = SkippedJobs(jobs.root)
        self._is_work_left = asyncio.Event()
        self._clean_up_at = 0.0

    async def register(self, accepted: Accepted) -> None:
        """Make a job known to Redis, now or later."""
        await run_sync(self.register_here, accepted)

    def register_here(self, accepted: Accepted) -> JobRecord | None:
        """Make a job known to Redis, now or later, within a thread that the server's loop has for requests: each more
        of them costs as much as a command of Redis.

        Returns:
            The record of a job that this request has created and made known, else None.
        """
        try:
            self._submissions.register(accepted)
        except RedisError as error:
            log.warning("job_not_registered", job_id=accepted.job_id, error=str(error))
            from_thread.run_sync(self._leave, accepted.job_id)
            return None
        return accepted.new

    def _leave(self, job_id: str) -> None:
        self._left.append(job_id)
        self._is_work_left.set()

    async def run(self) -> None:
        """Register the jobs that an earlier process or a lost connection has left; never returns."""
        backoff = Backoff(0.1, 5.0)
        is_first = True
        while True:
            try:
                await run_sync(self._clean_up)
                if is_first:
                    self._left += await run_sync(self._unknown_to_redis)
                    is_first = False
                while self._left:
                    await self._register_next()
                backoff.reset()
                self._is_work_left.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_work_left.wait(), _CLEAN_UP_S)
            except (RedisError, OSError) as error:
                log.warning("registration_delayed", error=str(error), jobs=len(self._left))
                await asyncio.sleep(backoff.next_s())

    async def _register_next(self) -> None:
        job_id = self._left[0]
        try:
            await run_sync(self._submissions.register, Accepted(job_id))
            log.info("job_registered_late", job_id=job_id)
        except UNREADABLE as error:
            self._skipped.report(job_id, error)
        del self._left[0]

    def _unknown_to_redis(self) -> list[str]:
        unfinished = (job_id for job_id in reversed(self._jobs.ids()) if not self._jobs.has_ended(job_id))
        return [job_id for job_id in unfinished if self._registry.state(job_id) is None]

    def _clean_up(self) -> None:
        """Remove what killed processes have left in the code store and beside the jobs, and keys of earlier days."""
        now = time.monotonic()
        if now < self._clean_up_at:
            return
        self._submissions.begin_day()
        for folder in [*code_store(self._jobs.root).glob(".incoming-*"), *abandoned(self._jobs.root)]:
            try:
                if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)
            except FileNotFoundError:
                continue
        self._clean_up_at = now + _CLEAN_UP_S
