"""The agent: one thread that waits for workers and calls Redis.

`NodeJob` decides what to do for one job, `WorkFinder` for which jobs; the agent decides when. While Redis is away the
workers go on. What they return is stored, and reported when Redis is back, unless the lease has run out by then.
"""

from __future__ import annotations

import time
from contextlib import suppress

from parallelrun_agent.environments.image_python import ImagePython
from parallelrun_agent.heartbeats import Heartbeats
from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_agent.jobs.work_finder import WorkFinder
from parallelrun_agent.loop import EventLoop
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.permits.server import PermitServer
from parallelrun_agent.redis_link import RedisLink
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.staging.place import StagePlace
from parallelrun_agent.users.places import open_ways
from parallelrun_agent.users.rights import check_and_restrict, check_apart
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_agent.workers.gpus import GpuPool, find_gpus
from parallelrun_agent.workers.inherited import early_key
from parallelrun_agent.workers.local_folder import claim_folder
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_agent.workers.survivors import end_survivors
from parallelrun_agent.workers.templates import WorkerTemplates
from parallelrun_core.service.secret_source import SecretSource
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.connection import CONNECTION_ERRORS, server_run_id

log = logger()

_LEAST_NAP_S = 0.005
_CHECK_EVERY_S = 0.05
_CHECKS_PER_LEASE = 40
_DRAIN_MARGIN_S = 5.0
"""How much longer than the workers' grace the node stays, to report."""


class Agent:
    """A node. After `stop()`, `run()` returns once everything is finished or returned."""

    def __init__(self, settings: AgentSettings, secrets: SecretSource) -> None:
        if settings.uids:
            check_apart(settings.uids, settings.root)
        self._settings = settings
        self._link = RedisLink(settings.redis_login)
        self._loop = EventLoop()
        self._orphans = Orphans()
        self._jobs: dict[str, NodeJob] = {}
        stage = StagePlace(settings.cache_folder, settings.stage_bytes, are_jobs_apart=bool(settings.uids))
        gpus = GpuPool(find_gpus(settings.gpus))
        python = ImagePython.find(user=settings.builder_user(owner="")) if settings.image else None
        permits = PermitServer(settings.root, settings.redis_login, settings.node)
        self._templates = WorkerTemplates(
            self._loop, self._orphans, on_change=self._look_for_work, is_on=settings.fork_workers
        )
        context = NodeContext(self._loop, self._orphans, gpus, stage, secrets, python, permits, self._templates)
        self._work = WorkFinder(self._link.redis, settings, context, self._jobs)
        self._heartbeats = Heartbeats(self._link.redis, settings, self._jobs, gpus.devices)
        self._is_stopping = False
        self.was_left_alone = False
        """Whether it ends because Redis hasn't answered for as long as it may be alone."""
        self._leave_at = _time_to_leave(settings)
        self._drain_by = float("inf")
        """When to leave, whatever isn't finished; infinite: not at all."""
        self._check_s = min(_CHECK_EVERY_S, settings.poll_seconds, settings.lease_seconds / _CHECKS_PER_LEASE)
        self._check_at = 0.0  # by hand, as the loop's every round compares it
        self._folder_lock = claim_folder(settings.local_folder, settings.uids)
        if settings.uids:
            check_and_restrict()
            open_ways(settings.root, settings.local_folder, WorkerUser(settings.uids.first))

    def stop(self, *_: object) -> None:
        """Finish what runs, return the rest, leave. Safe to call from a signal handler."""
        self._is_stopping = True
        self._loop.wake()

    @property
    def connected(self) -> bool:
        return self._link.is_up

    def run(self) -> None:
        """Work until stopped."""
        if self._settings.uids:
            with suppress(OSError):  # before a job could, where it is below /tmp
                self._settings.cache_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._loop.wake_on_signals()
        self._orphans.begin()
        if self._settings.preload:
            self._templates.begin(early_key(self._settings), self._settings.preload.split(), time.monotonic())
        end_survivors(self._settings.local_folder, self._settings.uids)
        while True:
            self._nap()
            self._loop.poll(self._pause_s())
            now = time.monotonic()
            if self._is_stopping and self._drain_by == float("inf"):
                self._drain(now)
            if now >= self._check_at:
                self._check_at = now + self._check_s
                for job in self._jobs.values():
                    job.check_time(now)
                self._heartbeats.check_state()
                self._poll_templates(now)
                if now >= self._leave_at or self._heartbeats.is_asked_to_leave:
                    self._is_stopping = True
            if now >= self._link.retry_at:
                self._call_redis(now)
            if self._is_stopping and (not self._jobs or now > self._drain_by):
                break
        self._leave()

    def _nap(self) -> None:
        """Let answers gather while all workers have enough to do: each waking costs as much as several answers."""
        if not self._jobs or self._is_stopping:
            return
        nap_s = self._check_s
        for job in self._jobs.values():
            job_s = job.nap_s()
            if job_s <= _LEAST_NAP_S:
                return
            nap_s = min(nap_s, job_s)
        time.sleep(max(0.0, min(nap_s, self._check_at - time.monotonic())))

    def _pause_s(self) -> float:
        """Return how long to wait for an event, at most."""
        if not self._link.is_up:
            return max(0.0, min(self._link.retry_at, self._check_at) - time.monotonic())
        if not self._jobs and not self._is_stopping:
            now = time.monotonic()
            return min(self._work.wait_s(now), self._heartbeats.wait_s(now))
        until = self._check_at
        for job in self._jobs.values():
            if (due_at := job.due_at()) < until:
                until = due_at
        left_s = until - time.monotonic()
        return left_s if left_s > 0 else 0.0

    def _call_redis(self, now: float) -> None:
        link, jobs = self._link, self._jobs.values()
        try:
            if not link.is_up:
                link.limit_wait(jobs, time.monotonic())
                self._reconnect()
            if self._heartbeats.is_due(now):
                link.limit_wait(jobs, time.monotonic())
                self._heartbeats.beat()
            for job in list(jobs):
                at = time.monotonic()  # the calls before this one may have taken their time
                link.limit_wait(jobs, at)
                if not job.is_over:
                    job.turn(at)
                if job.is_over:
                    self._forget(job)
            if not self._is_stopping and self._work.is_due(now):
                link.limit_wait(jobs, time.monotonic())
                try:
                    self._work.poll(now)
                finally:
                    link.forget_limit()  # also one job more may have workers now
        except CONNECTION_ERRORS as error:
            link.failed(error, now)
            self._check_alone(now)

    def _check_alone(self, now: float) -> None:
        """After an attempt, since whoever was paused for long finds Redis there when it asks."""
        limit_s = self._settings.alone_seconds
        if limit_s and self._link.silent_s(now) >= limit_s and not self._is_stopping:
            log.error("left_alone", seconds=limit_s)
            self.was_left_alone = self._is_stopping = True

    def _reconnect(self) -> None:
        """Redis may have forgotten what it knew."""
        run_id = server_run_id(self._link.redis)
        for job in self._jobs.values():
            job.reassert()
        self._heartbeats.beat()  # a server that can't write, for want of memory or disk, isn't back
        self._link.recovered(run_id)
        self._heartbeats.soon()

    def _forget(self, job: NodeJob) -> None:
        del self._jobs[job.job_id]
        job.close()
        self._poll_templates(time.monotonic())  # what is that job's own ends with it
        self._heartbeats.soon()
        self._work.soon()

    def _look_for_work(self) -> None:
        self._work.soon()

    def _poll_templates(self, now: float) -> None:
        if self._templates.end_unused(now, self._jobs):
            self._orphans.reap()

    def _drain(self, now: float) -> None:
        self._drain_by = now + self._settings.grace_seconds + _DRAIN_MARGIN_S
        log.info("draining", jobs=len(self._jobs))
        self._heartbeats.is_draining = True
        self._heartbeats.soon()
        for job in self._jobs.values():
            job.drain(self._settings.grace_seconds, now)

    def _leave(self) -> None:
        for job in list(self._jobs.values()):
            self._forget(job)
        self._templates.close()
        self._orphans.reap()
        try:
            self._heartbeats.leave()
        except CONNECTION_ERRORS as error:
            log.warning("redis_away", error=str(error))
        log.info("stopped")


def _time_to_leave(settings: AgentSettings) -> float:
    """Return when to drain by itself, on the monotonic clock, so that all is over when the node is ended; infinite:
    never."""
    if not settings.ends_at:
        return float("inf")
    return time.monotonic() + settings.ends_at - time.time() - settings.grace_seconds - 2 * _DRAIN_MARGIN_S
