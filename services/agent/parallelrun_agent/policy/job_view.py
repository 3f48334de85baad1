"""A read-only view of a job machine. Nothing in here makes it ask for anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from parallelrun_agent.policy.apart_queue import ApartQueue
from parallelrun_agent.policy.commands import NextTurn
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.membership import Membership
from parallelrun_agent.policy.turn_schedule import TurnSchedule
from parallelrun_agent.policy.worker import Worker
from parallelrun_agent.policy.worker_pool import WorkerPool


class JobView(Protocol):
    """A `JobMachine` as those see it who give it no events; what these are for is said there."""

    @property
    def workers(self) -> Sequence[Worker]: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def membership(self) -> Membership: ...
    @property
    def turns(self) -> TurnSchedule: ...
    @property
    def apart(self) -> ApartQueue: ...
    @property
    def pool(self) -> WorkerPool: ...
    @property
    def is_awaited(self) -> bool: ...
    def nap_s(self) -> float: ...
    def next_turn(self, now: float) -> NextTurn | None: ...
    def overdue(self, now: float) -> list[Worker]: ...
    def wanted_workers(self, now: float) -> int: ...
