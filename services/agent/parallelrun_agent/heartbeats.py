"""Heartbeats: a node's report that it lives, what it does, and whether it can do more."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_agent.node.checks import NodeChecks
from parallelrun_agent.node.nvml import GpuWatch
from parallelrun_agent.node.usage_meter import UsageMeter
from parallelrun_agent.node.waits import PressureReader
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.answers.nodes import NodeCheck
from parallelrun_core.ids import new_session
from parallelrun_core.service.pacing import Every
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.wire.states import NodeState

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

_BEATS_PER_LEASE = 4
_MEASURE_IDLE_S = 10.0
"""Between two measurements of a node without jobs: they are a third of what it costs."""


class Heartbeats:
    """The heartbeats of one agent. `beat` and `leave` raise redis-py's errors.

    Args:
        jobs: those that the node works for, by their ids.
        gpus: those that workers get, as CUDA_VISIBLE_DEVICES names them.
    """

    def __init__(
        self, redis: Redis, settings: AgentSettings, jobs: Mapping[str, NodeJob], gpus: Sequence[str] = ()
    ) -> None:
        self.is_draining = False
        self.is_asked_to_leave = False
        """Whether somebody wants the node to end."""
        self._nodes = NodeRegistry(redis)
        self._settings = settings
        self._jobs = jobs
        self._session = new_session(settings.node)
        self._version = version("parallelrun")
        self._started = time.time()
        self._checks = NodeChecks(settings.root)
        self._waits = PressureReader()
        self._usage = UsageMeter(self._waits)
        self._measures_idle = Every(_MEASURE_IDLE_S)
        self._pressure, self._use = self._waits.now(), self._usage.now(time.monotonic(), self._started)
        self._gpus = GpuWatch(gpus)
        self._gpu_count = len(gpus)
        self._interval = Every(settings.lease_seconds / _BEATS_PER_LEASE)
        self._reported_state = ""
        self._reported_check: NodeCheck | None = None
        self._memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        # The agent's loop asks these at every turn.
        self.is_due = self._interval.is_due
        self.wait_s = self._interval.wait_s
        self.soon = self._interval.soon

    def check_state(self) -> None:
        """Be due at once when the node's state has changed, or it has something to answer."""
        if self._state() != self._reported_state or self._checks.answer is not self._reported_check:
            self.soon()

    def beat(self) -> None:
        settings, state, jobs = self._settings, self._state(), self._jobs
        now, wall = time.monotonic(), time.time()
        if jobs or self._use is None or self._measures_idle.is_due(now):
            self._measures_idle.delay(now)
            self._pressure, self._use = self._waits.now(), self._usage.now(now, wall)
        answer = self._checks.answer
        requests = self._nodes.beat(
            NodeInfo(
                node=settings.node,
                session=self._session,
                host=socket.gethostname(),
                pid=os.getpid(),
                slots=settings.slots,
                most_slots=settings.most_slots,
                busy=sum(len(job.workers) for job in jobs.values()),
                state=state,
                version=self._version,
                started=self._started,
                jobs=sorted(jobs),
                memory_bytes=self._memory_bytes,
                disk_free_bytes=self._disk_free_bytes(),
                sent=wall,
                workers_apart=settings.uids is not None,
                workers={job_id: len(job.workers) for job_id, job in jobs.items() if job.workers},
                owners=_workers_by_owner(jobs.values()),
                work={job_id: job.work(now, wall) for job_id, job in jobs.items()},
                pressure=self._pressure,
                usage=self._use,
                gpus=self._gpus.latest,
                gpu_count=self._gpu_count,
                in_hand=sum(map(_in_hand, jobs.values())),
                check=answer,
                compute=settings.compute,
                image=settings.image,
                ends_at=settings.ends_at,
            ),
            lease_ms=settings.lease_ms,
        )
        if requests.check is not None:
            self._checks.ask(requests.check)
        for request in requests.stacks:
            if request.job_id in jobs:
                jobs[request.job_id].show_stacks(request)
        self.is_asked_to_leave = requests.leave
        self._reported_state, self._reported_check = state, answer

    def leave(self) -> None:
        """The node is there no more."""
        self._gpus.stop()
        self._nodes.remove(self._settings.node, self._session)

    def _disk_free_bytes(self) -> int:
        try:
            return shutil.disk_usage(self._settings.local_folder).free
        except OSError:
            return 0

    def _state(self) -> NodeState:
        if self.is_draining:
            return NodeState.DRAINING
        has_room = not any(job.disk_is_full for job in self._jobs.values())
        return NodeState.READY if has_room else NodeState.DISK_FULL


def _workers_by_owner(jobs: Iterable[NodeJob]) -> dict[str, int]:
    workers: dict[str, int] = {}
    for job in jobs:
        workers[job.owner] = workers.get(job.owner, 0) + len(job.workers)
    return workers


def _in_hand(job: NodeJob) -> int:
    """Return how much of a node a job occupies with more than waiting: none, if all is here and it needs no worker."""
    workers = job.workers
    if not workers:
        return int(not job.is_prepared)
    return sum(bool(worker.in_flight) or not worker.is_through_init for worker in workers)
