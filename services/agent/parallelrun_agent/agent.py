"""The agent: one thread that waits for workers and calls Redis.

`NodeJob` decides what to do for one job; the agent decides for which jobs, and when to call Redis. While Redis is away
the workers go on. What they return is kept, and reported when Redis is back, unless the lease has run out by then.
"""

from __future__ import annotations

import os
import socket
import time
from importlib.metadata import version

from parallelrun_agent.loop import EventLoop
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.node_job import NodeJob
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.workers.gpus import GpuPool, find_gpus
from parallelrun_agent.workers.leftovers import end_leftovers
from parallelrun_agent.workers.local_folder import claim_folder
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.ids import new_session
from parallelrun_core.service.telemetry import logger
from parallelrun_core.states import JobState, NodeState
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect_directly, server_run_id
from parallelrun_core.store.nodes import NodeInfo, Nodes
from parallelrun_core.store.registry import Registry

log = logger()

_RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_ANSWER_S = 5.0
_LEAST_ANSWER_S = 0.02
_LEAST_NAP_S = 0.005
_CHECK_EVERY_S = 0.05
_CHECKS_PER_LEASE = 40
_LOOK_ANYWAY_S = 0.25
"""How often a node without room looks for work nevertheless: a job that it works for may have ended."""
_DROWSY_AFTER_S = 5.0
_DROWSY_LOOK_S = 0.2
_JOIN_AGAIN_S = 1.0


class Agent:
    """One node. After `stop()`, `run()` returns once everything is finished or returned."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._redis = connect_directly(settings.redis_url)
        self._registry = Registry(self._redis)
        self._nodes = Nodes(self._redis)
        self._loop = EventLoop()
        self._orphans = Orphans()
        self._context = NodeContext(self._loop, self._orphans, GpuPool(find_gpus(settings.gpus)))
        self._jobs: dict[str, NodeJob] = {}
        self._skipped = SkippedJobs(settings.root)
        self._join_at: dict[str, float] = {}
        """When to try again to join jobs of which something could not be read or created."""
        self._id = new_session(settings.node)
        self._version = version("parallelrun")
        self._started = time.time()
        self._draining = False
        self._failures = 0
        self._retry_at = 0.0
        self._beat_at = 0.0
        self._reported_state = ""
        self._look_at = 0.0
        self._look_by = 0.0
        self._check_s = min(_CHECK_EVERY_S, settings.poll_seconds, settings.lease_seconds / _CHECKS_PER_LEASE)
        self._check_at = 0.0
        self._had_work = time.monotonic()
        self._limit_s = 0.0
        self._patient_until = 0.0
        self._folder_lock = claim_folder(settings.local_folder)

    def stop(self, *_: object) -> None:
        """Finish what runs, return the rest, leave. Safe to call from a signal handler."""
        self._draining = True
        self._loop.wake()

    @property
    def connected(self) -> bool:
        return self._failures == 0

    def run(self) -> None:
        """Work until stopped."""
        self._loop.wake_on_signals()
        self._orphans.adopt()
        end_leftovers(self._settings.local_folder)
        drain_by = float("inf")
        while True:
            self._nap()
            self._loop.poll(self._pause_s())
            now = time.monotonic()
            if self._draining and drain_by == float("inf"):
                drain_by = now + self._settings.grace_seconds + 5
                log.info("draining", jobs=len(self._jobs))
                self._beat_at = 0.0
                for job in self._jobs.values():
                    job.drain(self._settings.grace_seconds, now)
            if now >= self._check_at:
                self._check_at = now + self._check_s
                for job in self._jobs.values():
                    job.check_time(now)
                self._hurry_beat()
            if now >= self._retry_at:
                self._call_redis(now)
            if self._draining and (not self._jobs or now > drain_by):
                break
        self._leave()

    def _nap(self) -> None:
        """Let answers gather while all workers have enough to do: each waking costs as much as several answers."""
        if not self._jobs or self._draining:
            return
        nap_s = self._check_s
        for job in self._jobs.values():
            job_s = job.nap_s()
            if job_s <= _LEAST_NAP_S:
                return
            nap_s = min(nap_s, job_s)
        time.sleep(max(0.0, min(nap_s, self._check_at - time.monotonic())))

    def _pause_s(self) -> float:
        """How long to wait for an event, at most."""
        if self._failures:
            until = min(self._retry_at, self._check_at)
        elif self._jobs or self._draining:
            until = self._check_at
            for job in self._jobs.values():
                if (due_at := job.due_at()) < until:
                    until = due_at
        else:
            until = min(self._look_at, self._beat_at)
        left_s = until - time.monotonic()
        return left_s if left_s > 0 else 0.0

    def _call_redis(self, now: float) -> None:
        try:
            if self._failures:
                self._limit_wait(time.monotonic())
                self._reconnected()
            if now >= self._beat_at:
                self._limit_wait(time.monotonic())
                self._beat()
                self._beat_at = now + self._settings.lease_seconds / 4
            for job in list(self._jobs.values()):
                at = time.monotonic()  # the calls before this one may have taken their time
                self._limit_wait(at)
                job.turn(at)
                if job.is_over:
                    self._forget(job)
            if now >= self._look_at and not self._draining:
                if now >= self._look_by or self._has_room():
                    self._limit_wait(time.monotonic())
                    self._look_for_work(now)
                    self._look_by = now + _LOOK_ANYWAY_S
                self._look_at = now + self._look_every_s(now)
        except CONNECTION_ERRORS as error:
            if not self._failures:
                log.warning("redis_away", error=str(error))
            self._retry_at = now + _RETRY_S[min(self._failures, len(_RETRY_S) - 1)]
            self._failures += 1

    def _has_room(self) -> bool:
        """Whether one more worker could be busy here."""
        busy = sum(
            not worker.is_through_init or bool(worker.in_flight)
            for job in self._jobs.values()
            for worker in job.workers
        )
        return busy < self._settings.slots

    def _look_every_s(self, now: float) -> float:
        """How soon to look for work again: less often after some time without any."""
        if self._jobs:
            self._had_work = now
        drowsy = now - self._had_work > _DROWSY_AFTER_S
        return max(self._settings.poll_seconds, _DROWSY_LOOK_S) if drowsy else self._settings.poll_seconds

    def _limit_wait(self, now: float) -> None:
        """No call may outlast a lease: while the agent waits, it can't end the workers of one that runs out."""
        if now < self._patient_until:
            return
        lease_left_s = min([job.lease_left_s(now) for job in self._jobs.values() if job.workers], default=_ANSWER_S)
        self._patient_until = now + lease_left_s - _ANSWER_S
        limit_s = max(_LEAST_ANSWER_S, min(_ANSWER_S, lease_left_s))
        if limit_s != self._limit_s:
            self._redis.limit_wait(limit_s)
            self._limit_s = limit_s

    def _reconnected(self) -> None:
        run_id = server_run_id(self._redis)
        for job in self._jobs.values():
            job.reassert()
        self._beat()  # a server that can't write, for want of memory or disk, isn't back
        log.info("redis_back", run_id=run_id, failures=self._failures)
        self._failures = 0
        self._beat_at = 0.0

    def _hurry_beat(self) -> None:
        """Send a heartbeat at once when the node's state has changed."""
        if self._state() != self._reported_state:
            self._beat_at = 0.0

    def _beat(self) -> None:
        settings, state = self._settings, self._state()
        self._nodes.beat(
            NodeInfo(
                node=settings.node,
                session=self._id,
                host=socket.gethostname(),
                pid=os.getpid(),
                slots=settings.slots,
                busy=sum(len(job.workers) for job in self._jobs.values()),
                state=state,
                version=self._version,
                started=self._started,
                jobs=sorted(self._jobs),
                workers={job_id: len(job.workers) for job_id, job in self._jobs.items() if job.workers},
            ),
            lease_ms=settings.lease_ms,
        )
        self._reported_state = state

    def _state(self) -> NodeState:
        if self._draining:
            return NodeState.DRAINING
        has_room = not any(job.disk_is_full for job in self._jobs.values())
        return NodeState.READY if has_room else NodeState.DISK_FULL

    def _look_for_work(self, now: float) -> None:
        """Give free slots to the oldest job that has something ready."""
        workers = [worker for job in self._jobs.values() for worker in job.workers]
        free, ending = self._settings.slots - len(workers), sum(worker.is_to_end for worker in workers)
        found = self._registry.peek()
        self._skipped.keep_only([job_id for job_id, _, _ in found])
        for job_id, state, ready in found:
            job = self._jobs.get(job_id)
            if job is not None:
                job.observed(state, ready)
            elif state is JobState.PROCESSING and ready and now >= self._join_at.get(job_id, 0.0):
                job = self._join(job_id, now)
            if job is None or not ready:
                continue
            wanted = job.wanted_workers(now)
            if 0 < wanted > ending and free <= 0:
                ending += self._make_room(job, now)  # the slot is free once that worker has ended
            while wanted > 0 and free > 0:
                job.spawn()
                self._patient_until = 0.0  # one job more may have workers now
                free -= 1
                wanted -= 1

    def _join(self, job_id: str, now: float) -> NodeJob | None:
        try:
            job = NodeJob(self._redis, JobFolder(self._settings.root, job_id), self._settings, self._context)
        except UNREADABLE as error:
            self._skipped.report(job_id, error)
            if isinstance(error, OSError):  # it may pass, but not at once, and each attempt may be expensive
                self._join_at[job_id] = now + _JOIN_AGAIN_S
            return None
        self._join_at.pop(job_id, None)
        self._jobs[job_id] = job
        job.turn(now)
        return job

    def _make_room(self, for_job: NodeJob, now: float) -> bool:
        """End an idle worker of another job; its slot is free a moment later."""
        return any(job.end_idle_worker(now) for job in self._jobs.values() if job is not for_job)

    def _forget(self, job: NodeJob) -> None:
        del self._jobs[job.job_id]
        job.close()
        self._beat_at = self._look_at = 0.0

    def _leave(self) -> None:
        for job in list(self._jobs.values()):
            self._forget(job)
        try:
            self._nodes.remove(self._settings.node)
        except CONNECTION_ERRORS as error:
            log.warning("redis_away", error=str(error))
        log.info("stopped")
