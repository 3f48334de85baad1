"""Several mini-batches in flight in one worker, all of which run: how many, and what follows for leases. No I/O.

Their run() waits for something else, an HTTP API or an engine that batches by itself, so a worker with room begins
whatever it gets. Answers come in any order. Whatever a worker had read may have been the cause of its death, so all of
that is charged; those that are suspect then run alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from parallelrun_agent.policy.in_flight import Assignment, InFlight
from parallelrun_agent.policy.look_ahead import LookAhead
from parallelrun_agent.policy.worker import Worker
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.job import MOST_IN_FLIGHT
from parallelrun_core.wire.data_warnings import DataWarning

GRACE_S: Final = 5.0
"""A worker cancels its own run() in time. One that doesn't blocks all of its mini-batches."""
_FIRST: Final = 8
"""Of `auto`, until there is a measurement."""
_WINDOW_S: Final = 1.0
_WINDOW_ANSWERS: Final = 2
"""`auto` measures until each mini-batch in flight was answered so often, and for that long at least."""
_GROWTH: Final = 1.5
_GAIN: Final = 1.1
"""More in flight is kept when throughput grew by this factor; otherwise the earlier number was enough."""
_AHEAD_S: Final = 0.1
"""How much work may wait in a worker, which begins it without its agent when it has answered."""
_SILENCE_S: Final = 0.3
"""A worker that has answered nothing for so long is slower than was known: what waits in it is taken back."""
_HOLD_WINDOWS: Final = 8
"""Windows until `auto` tries more again after more was of no use."""


@dataclass(slots=True)
class ConcurrentInFlight(InFlight):
    """The deliveries that a worker runs at the same time, oldest first."""

    alive_at: float = 0.0
    """Monotonic time of the last sign that its event loop isn't blocked."""

    width: int = 0
    """The number of mini-batches that it was told to run at once; 0: it was told nothing."""
    answered_at: float = 0.0
    """Monotonic time of the last answer, or since when it has had something to answer."""
    _by_id: dict[int, Assignment] = field(default_factory=dict)
    """The assignments by the ids of their mini-batches: each answer is looked up, and hundreds may be in flight."""

    def has(self, mini_batch: int) -> bool:
        return mini_batch in self._by_id

    def alive(self, now: float) -> None:
        self.alive_at = now

    def holds_up(self, now: float) -> bool:
        """Return whether no answer has come for a while, so that what it hasn't begun should run elsewhere."""
        return bool(self.assignments) and now - self.answered_at > _SILENCE_S

    def has_unread(self, now: float) -> bool:
        return 0 < self.width < len(self.assignments) and self.holds_up(now)

    def loading_s(self, now: float) -> float:
        return max((now - each.began for each in self.assignments if each.loads and not each.loaded_at), default=0.0)

    def in_run_s(self, now: float) -> float:
        """Return for how long the worker has not shown that it could cancel a mini-batch; those that wait for permits
        may take any time."""
        begun = [max(each.began, each.loaded_at) for each in self.assignments if not each.loads or each.loaded_at]
        return max(0.0, now - max(self.alive_at, min(begun)) - GRACE_S) if begun else 0.0

    def room(self, depth: int, now: float) -> int:
        if self.is_closed:
            return 0
        return max(0, (min(depth, self.width) if self.holds_up(now) else depth) - len(self.assignments))

    def push(self, assignments: list[Assignment], now: float) -> None:
        if not self.assignments:
            self.answered_at = now
        for each in assignments:
            each.began = now
            self._by_id[each.delivery.mini_batch] = each
        InFlight.push(self, assignments, now)

    def answered(self, mini_batch: int, now: float) -> Assignment:
        assignment = self._of(mini_batch, "answered for")
        self.answered_at = now
        del self._by_id[mini_batch]
        self.assignments.remove(assignment)
        self.head_since = self.assignments[0].began if self.assignments else now
        if not self.assignments:
            self.is_closed = False
        return assignment

    def warned(self, mini_batch: int, warnings: Sequence[DataWarning]) -> None:
        InFlight.warned(self, mini_batch, [*self._of(mini_batch, "warned of").warnings, *warnings])

    def _of(self, mini_batch: int, event: str) -> Assignment:
        assignment = self._by_id.get(mini_batch)
        if assignment is None:
            raise LookupError(f"the worker {event} mini-batch {mini_batch}, which it does not have")
        return assignment

    def take_back(self, mini_batches: Iterable[int]) -> list[Assignment]:
        self.width = 0  # that may have been taken back, too
        removed = InFlight.take_back(self, mini_batches)
        for each in removed:
            del self._by_id[each.delivery.mini_batch]
        return removed

    def died(self, *, running: bool) -> tuple[list[tuple[Assignment, float]], list[Assignment]]:
        self._by_id.clear()
        return InFlight.died(self, running=running)

    def running(self) -> list[tuple[Assignment, float]]:
        return self.begun_of(list(islice(self.assignments, self.width or None)))

    def begun_of(self, assignments: list[Assignment]) -> list[tuple[Assignment, float]]:
        return [(each, each.began) for each in assignments]


class Concurrency(LookAhead):
    """The policy for how many mini-batches a worker runs at once: a number, or what its throughput asks for.

    Args:
        most: the number; None: it grows for as long as throughput grows with it.
    """

    def __init__(self, most: int | None) -> None:
        super().__init__(enabled=False)
        self._is_fixed = most is not None
        self._width = most or _FIRST
        self._answers = 0
        self._window_since = 0.0
        self._rate = 0.0
        """Answers per second before the last growth."""
        self._before = 0
        """The number before it; 0: it has proved to be of use."""
        self._hold = 0

    def observe(self, run_s: float) -> None:
        super().observe(run_s)
        self._answers += 1

    @property
    def width(self) -> int:
        return self._width

    @property
    def depth(self) -> int:
        """Return how many a worker may have: those that run, and those that it can begin as soon as it has answered."""
        ahead_s = min(self.run_s, _AHEAD_S) if self.run_s else 0.0
        return self._width + int(self._width * ahead_s / self.run_s) if ahead_s else self._width

    @property
    def depth_of_long(self) -> int:
        return self._width

    def nap_s(self, counts: Sequence[int]) -> float:
        return 0.0

    def wanted(self, workers: Iterable[Worker], waiting: int, now: float) -> int:
        """Return how many more to lease: nothing before half of what may wait in the workers has been begun."""
        workers, depth = list(workers), self.depth
        room = sum(worker.in_flight.room(depth, now) for worker in workers)
        ahead = (depth - self._width) * len(workers)
        if not self._is_fixed:
            self._measure(len(workers), is_full=2 * (room - ahead) < len(workers) * self._width, now=now)
        return 0 if 2 * (room - waiting) < ahead else max(0, room - waiting)

    def _measure(self, workers: int, *, is_full: bool, now: float) -> None:
        """Look at the end of a window whether the last growth was of use, and grow again if so."""
        if not self._window_since or not is_full:  # idle workers say nothing about what they could bear
            self._window_since, self._answers = now, 0
            return
        window_s = now - self._window_since
        if window_s < _WINDOW_S or self._answers < _WINDOW_ANSWERS * self._width * workers:
            return
        rate = self._answers / window_s
        self._window_since, self._answers = now, 0
        if self._before and rate < _GAIN * self._rate:
            self._width, self._before, self._hold = self._before, 0, _HOLD_WINDOWS
        elif self._hold:
            self._hold -= 1
        elif self._width < MOST_IN_FLIGHT:
            self._rate, self._before = rate, self._width
            self._width = min(MOST_IN_FLIGHT, math.ceil(_GROWTH * self._width))


def bookkeeping_of(spec: JobSpec) -> tuple[type[InFlight], LookAhead]:
    """Return the class for what a worker of this job has in flight, and the policy for how much that is."""
    most = spec.mini_batches_in_flight
    if most == 1:
        return InFlight, LookAhead(enabled=spec.look_ahead)
    return ConcurrentInFlight, Concurrency(None if most == "auto" else most)
