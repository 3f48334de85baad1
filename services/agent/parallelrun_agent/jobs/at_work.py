"""Says on Redis what the workers of a job do on this node, for those who watch the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_core.service.pacing import Every
from parallelrun_core.store.job_views import report_at_work
from parallelrun_core.wire.at_work import Doing, NodeWork, TryAtWork, WorkerAtWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from parallelrun_agent.policy.in_flight import Assignment
    from parallelrun_agent.policy.job_view import JobView
    from parallelrun_agent.policy.worker import Worker
    from parallelrun_core.store.connection import Redis

_EVERY_S: Final = 1.0
_AGAIN_S: Final = 5.0
"""How often to say what has not changed: readers take what is much older for wrong."""
_MOST_TRIES: Final = 64
"""Of one worker that are told."""


class AtWorkReports:
    def __init__(self, redis: Redis, job_id: str, node: str) -> None:
        self._redis = redis
        self._job_id = job_id
        self._node = node
        self._every = Every(_EVERY_S)
        self._again = Every(_AGAIN_S)
        # The agent's loop asks this at every turn.
        self.is_due = self._every.is_due
        self._reported: tuple[str, list[WorkerAtWork]] | None = None

    def report(self, view: JobView, work: NodeWork, now: float, wall: float) -> None:
        """Send the report, unless nothing that it says of workers has changed since the last one, a moment ago.

        Args:
            work: what the heartbeat says of the job.
            now, wall: the same moment by the monotonic clock, and in seconds since the epoch.

        Raises:
            RedisError: Redis is away.
        """
        workers = workers_at_work(view.workers, now=now, wall=wall, waits_for_data=view.deliveries.is_waiting_for_data)
        content = (work.preparing, workers)
        if content == self._reported and not self._again.is_due(now):
            return
        self._again.delay(now)
        report = msgspec.structs.replace(work, at=round(wall, 3), workers=workers)
        report_at_work(self._redis, self._job_id, self._node, report)
        self._reported = content


def workers_at_work(workers: Iterable[Worker], *, now: float, wall: float, waits_for_data: bool) -> list[WorkerAtWork]:
    """Describe workers as they are.

    Args:
        now: monotonic; `wall` is the same moment in seconds since the epoch.
        waits_for_data: mini-batches of this node wait for their files.
    """

    def time_of(at: float) -> float:
        # To the tenth: the two clocks drift, and what hasn't changed shall look the same the next time.
        return round(wall - (now - at), 1)

    described = []
    for worker in workers:
        doing, since = _doing(worker, waits_for_data=waits_for_data)
        running = worker.in_flight.running() if worker.is_through_init else []
        tries = [_try_of(each, time_of(began), time_of) for each, began in running[:_MOST_TRIES]]
        described.append(WorkerAtWork(worker.process, doing, time_of(since), tries, len(running)))
    return described


def _doing(worker: Worker, *, waits_for_data: bool) -> tuple[Doing, float]:
    """Return what a worker does, and since when on the monotonic clock."""
    if not worker.is_through_init:
        return "init", worker.started
    if worker.in_flight.assignments:
        head, began = worker.in_flight.running()[0]
        is_loading = head.loads and not head.loaded_at
        return ("loading" if is_loading else "running"), max(began, head.loaded_at)
    since = max(worker.in_flight.head_since, worker.ready_at)
    if worker.is_to_end:
        return "ending", since
    return ("waiting_for_data" if waits_for_data else "idle"), since


def _try_of(assignment: Assignment, began: float, time_of: Callable[[float], float]) -> TryAtWork:
    delivery = assignment.delivery
    loaded = time_of(assignment.loaded_at) if assignment.loaded_at else 0.0 if assignment.loads else began
    return TryAtWork(delivery.mini_batch, delivery.tries + 1, assignment.items, began, loaded)
