"""Makes every accepted job known to Redis, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from anyio import from_thread
from anyio.to_thread import run_sync

from parallelrun_api.submission.submissions import Accepted, Submissions
from parallelrun_api.views.jobs import JobReader
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.service import telemetry
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.store.connection import RedisError
from parallelrun_core.store.registry import Registry

log = telemetry.logger()

_Result = TypeVar("_Result")


class Registrar:
    """Registers accepted jobs: at once when Redis is up, in the background when it isn't."""

    def __init__(self, submissions: Submissions, jobs: JobReader, registry: Registry) -> None:
        self._submissions = submissions
        self._jobs = jobs
        self._registry = registry
        self._unregistered: asyncio.Queue[str] = asyncio.Queue()
        self._skipped = SkippedJobs(jobs.root)

    async def register(self, accepted: Accepted) -> None:
        """Make a job known to Redis, now or later."""
        await run_sync(self.register_here, accepted)

    def register_here(self, accepted: Accepted) -> JobRecord | None:
        """Make a job known to Redis, now or later. For a request that is in a thread of the server's loop already:
        another thread would cost as much as a command of Redis.

        Returns:
            The record of a job that this request has created and made known, else None.
        """
        try:
            self._submissions.register(accepted)
        except RedisError as error:
            log.warning("job_not_registered", job_id=accepted.job_id, error=str(error))
            from_thread.run_sync(self._unregistered.put_nowait, accepted.job_id)
            return None
        return accepted.new

    async def run(self) -> None:
        """Register the jobs that an earlier process or a lost connection has left; never returns."""
        for job_id in await self._until_done(self._unknown_to_redis):
            self._unregistered.put_nowait(job_id)
        while True:
            job_id = await self._unregistered.get()
            await self._until_done(partial(self._register_late, job_id), jobs=1)

    async def _until_done(self, step: Callable[[], _Result], *, jobs: int = 0) -> _Result:
        """Return what a step returns, in as many attempts as it takes.

        Args:
            jobs: how many it registers.
        """
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return await run_sync(step)
            except (RedisError, OSError) as error:
                log.warning("registration_delayed", error=str(error), jobs=self._unregistered.qsize() + jobs)
                await asyncio.sleep(backoff.next_s())

    def _unknown_to_redis(self) -> list[str]:
        unfinished = (job_id for job_id in reversed(self._jobs.ids()) if not self._jobs.has_ended(job_id))
        return [job_id for job_id in unfinished if self._registry.state(job_id) is None]

    def _register_late(self, job_id: str) -> None:
        try:
            self._submissions.register(Accepted(job_id))
            log.info("job_registered_late", job_id=job_id)
        except UNREADABLE as error:
            self._skipped.report(job_id, error)
