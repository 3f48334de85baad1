"""Deliveries whose files are elsewhere: leased earlier, and handed to a worker when they are here. No I/O.

Leased → staging → backlog → …, from there on as any other. While a worker runs one mini-batch, the next ones are
staged: as many as it takes that it never waits, if the store needs as long as it did for the last ones. Of what is left
of a job, a node takes no more of them than its share, as another node might have nothing to do. Where run() takes so
long that staging is nothing beside it, that is what all workers won't take anyway, and the rest is given back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from parallelrun_agent.policy.commands import Command, Deliver, StageFiles, Unstage
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.look_ahead import LookAhead
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.leasing import TurnReports

_AT_FIRST: Final = 2
"""Ahead of each worker while nobody knows how long run() takes: it may be hours, and nodes may be about to come."""
_MOST_AHEAD: Final = 64
"""Of each worker."""
_SLACK: Final = 0.5
"""In mini-batches: the next ones may take longer to stage than the last ones, and be quicker to run."""
_SHARES: Final = 4
"""In so many at least, while it isn't known how many nodes there are, or how long run() takes."""
_PARTS: Final = 4
"""Short mini-batches are leased in so many parts of what workers may have in flight: each costs a call of Redis."""
_LONG: Final = 20
"""A run() that takes so many times as long as staging for it: a worker that waits for the latter loses next to nothing.
"""
_LONG_S: Final = 5.0
"""And at least so long: giving back, leasing and staging again are some calls."""
_WEIGHT: Final = 0.2
_MOST_FILES: Final = 256
"""What may be on its way at the same time: more would not be faster, and the agent has leases to renew."""


class StagedDeliveries(Deliveries):
    """The deliveries of one session.

    Args:
        commands: where to put what is to be staged, and what needs not be any more.
    """

    def __init__(self, commands: deque[Command], retries: MiniBatchRetryPolicy) -> None:
        super().__init__(retries)
        self._commands = commands
        self._staging: dict[str, Assignment] = {}
        self._staged: dict[str, tuple[float, float]] = {}
        """From when to when each was staged."""
        self._stage_s = 0.0
        self._files = 1.0
        """In a mini-batch, about."""

    @property
    def is_waiting_for_data(self) -> bool:
        return bool(self._staging)

    def unassigned(self) -> list[str]:
        return [*self._staging, *super().unassigned()]

    def wanted(self, look_ahead: LookAhead, workers: Sequence[Worker], ready: int, now: float) -> int:
        # What runs may be long after many that were short, and only its end tells `look_ahead`.
        is_long, ahead = self._is_long(look_ahead, workers, now), _AT_FIRST
        depth = look_ahead.depth_of_long if is_long else look_ahead.depth
        if look_ahead.run_s:
            ahead = min(_MOST_AHEAD, math.ceil(self._stage_s / max(look_ahead.run_s, 1e-3) + _SLACK))
        waiting = len(self.backlog) + len(self._staging)
        share = self._share(look_ahead, workers, ready, now)
        room = sum(max(0, depth - len(worker.in_flight)) for worker in workers)
        count = room + min(ahead * len(workers), share) - waiting
        most = max(2 * len(workers), int(_MOST_FILES / self._files)) - len(self._staging)
        count = max(0, min(count, most))
        few = depth * len(workers) // _PARTS if depth > 1 else 0
        return 0 if count < few <= waiting else count

    def _share(self, look_ahead: LookAhead, workers: Sequence[Worker], ready: int, now: float) -> int:
        """Return how many may be ahead of these workers, of so many that are ready for any node."""
        # A node that is alone so far takes all others' shares only once it is known that none of them takes hours.
        nodes = self.nodes if self.nodes and look_ahead.run_s else max(self.nodes, _SHARES)
        returned = len(self.reports.returns)  # will be ready once that is reported
        share = (ready + returned + len(self.backlog) + len(self._staging)) // nodes
        return max(0, share - len(workers)) if self._is_long(look_ahead, workers, now) else share

    def _is_long(self, look_ahead: LookAhead, workers: Sequence[Worker], now: float) -> bool:
        """Return whether run() takes so long, also as far as that is known of one that hasn't returned, that staging is
        no matter."""
        run_s = max(look_ahead.run_s, min((worker.in_flight.running_s(now) for worker in workers), default=0.0))
        return run_s > max(_LONG_S, _LONG * self._stage_s)

    def receive(self, assignments: Iterable[Assignment]) -> None:
        leased = [*assignments]
        for each in leased:
            self.held[each.delivery.token] = each.delivery
            self._staging[each.delivery.token] = each
        if leased:
            self._commands.append(StageFiles(leased))

    def staged(self, token: str, elapsed_s: float, now: float, files: int = 1) -> Assignment | None:
        """Take the delivery whose staging has ended out of those that are staged; None if it was given back.

        Args:
            files: how many it has.
        """
        assignment = self._staging.pop(token, None)
        if assignment is not None:
            self._stage_s += (_WEIGHT if self._stage_s else 1.0) * (elapsed_s - self._stage_s)
            self._files = max(1.0, files, (1 - _WEIGHT) * self._files + _WEIGHT * files)
            self._staged[token] = now - elapsed_s, now
        return assignment

    def hand_out(self, workers: list[Worker], depth: int, now: float) -> list[Deliver]:
        idle_since = {id(worker): worker.in_flight.head_since for worker in workers if not worker.in_flight}
        commands = super().hand_out(workers, depth, now)
        for each in commands:
            first = each.assignments[0]
            began, staged = self._staged.get(first.delivery.token, (now, now))
            first.waited_s = max(0.0, staged - max(began, idle_since.get(id(each.worker), now)))
            for assignment in each.assignments:
                self._staged.pop(assignment.delivery.token, None)
        return commands

    def give_back_backlog(self, now: float) -> None:
        """Return all that is not assigned yet, with what is still being staged."""
        self.give_back(self._staging.values(), now)
        self._staging.clear()
        super().give_back_backlog(now)

    def give_back_held_up(self, look_ahead: LookAhead, workers: Sequence[Worker], ready: int, now: float) -> None:
        """Only beyond this node's share of long ones: what is here would have to be staged elsewhere first."""
        if self._is_long(look_ahead, workers, now):
            ahead = len(self.backlog) + len(self._staging)
            surplus = min(len(self.backlog), ahead - self._share(look_ahead, workers, ready, now))
            self.give_back([self.backlog.pop() for _ in range(surplus)], now)

    def drop_backlog(self) -> None:
        self._staging.clear()
        super().drop_backlog()

    def acknowledged(self, reports: TurnReports) -> None:
        super().acknowledged(reports)
        if tokens := reports.tokens():
            for token in tokens:
                self._staged.pop(token, None)
            self._commands.append(Unstage(tokens))
