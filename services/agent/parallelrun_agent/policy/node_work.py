"""Work of this node for a job, as its heartbeat reports it. Pure policy, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from parallelrun_agent.policy.worker import Worker
from parallelrun_core.wire.at_work import NodeWork

WORKS_AT_LEAST: Final = 10.0
"""A worker is taken back only after it has worked for so many times what its init() took."""
_WORTH_TELLING_S: Final = 1.0
"""A mini-batch that runs for less is no longest one: another one would be told with each heartbeat."""


@dataclass(slots=True)
class Share:
    """The part of a job of the node's slots, beside other jobs.

    Args:
        target: workers that it is to have; -1: it shares the node with nobody.
        lacks_memory: no worker of it is started, since there is no memory beside those of other jobs.
    """

    target: int = -1
    lacks_memory: bool = False


def work_of(
    workers: Sequence[Worker],
    now: float,
    wall: float,
    *,
    init_limit_s: float = 0.0,
    preparing: str = "",
    standing: Share,
) -> NodeWork:
    """Return the work of these workers of one job.

    Args:
        now, wall: the same moment by the monotonic clock, and in seconds since the epoch.
        init_limit_s: seconds that `init()` may take.
        preparing: what workers still need here.
    """
    starting = [worker.started for worker in workers if worker.stage == "starting" and not worker.is_through_init]
    running = [worker.in_flight for worker in workers if worker.in_flight.running_s(now) >= _WORTH_TELLING_S]
    longest = min(running, key=lambda each: each.head_since, default=None)
    return NodeWork(
        preparing=preparing,
        init_since=round(wall - (now - min(starting)), 1) if starting else 0.0,
        init_limit_s=init_limit_s,
        longest=longest.assignments[0].delivery.mini_batch if longest is not None else -1,
        longest_since=round(wall - (now - longest.head_since), 1) if longest is not None else 0.0,
        in_flight=sum(len(worker.in_flight.running()) for worker in workers if worker.in_flight.width != 1),
        frees_in_s=round(min((time_to_work(worker, now) for worker in workers), default=0.0), 1),
        lacks_memory=standing.lacks_memory,
        target=standing.target,
    )


def time_to_work(worker: Worker, now: float) -> float:
    """Return the seconds until a worker may be taken back, by what its init() took; one in `init()` counts as through
    it now."""
    ready_at, init_s = (worker.ready_at, worker.init_s) if worker.is_through_init else (now, now - worker.started)
    return max(0.0, ready_at + WORKS_AT_LEAST * init_s - now)
