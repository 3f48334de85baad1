"""The mini-batches that one worker has in flight, first in first out. Pure bookkeeping, no I/O.

Only the first, the head, runs. So when a worker dies, the head is what it died of, and the rest goes elsewhere without
having used up a try.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from parallelrun_agent.policy.isolation import Isolation, PartEvent
from parallelrun_core.errors import CorruptLog
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.leasing import Delivery
from parallelrun_core.wire.message import is_retried, retried_of
from parallelrun_core.wire.outcome import LostItems

SLOW_HEAD_S: Final = 0.1
"""A head that runs for longer than this was not expected to: what waits for it is taken back."""


class Assignment(msgspec.Struct, gc=False):
    """A delivery that is to be run by a worker here."""

    delivery: Delivery
    items: int = 0
    handed_over: float = 0.0
    """Wall clock, for the record."""
    loads: bool = False
    """The worker reads or copies its data first, and reports when it has done so and calls run()."""
    loaded_at: float = 0.0
    """Time when it reported that, monotonic; 0: not yet."""
    load_s: float = 0.0
    """Seconds that loading took."""
    waited_s: float = 0.0
    """Seconds that its worker had nothing to do before, because its files were still on their way to this node."""
    files: int = 0
    """Number of files its run() has written for outputs in stores."""
    warnings: tuple[DataWarning, ...] = ()
    """About its data, from this try."""
    lost: tuple[LostItems, ...] = ()
    """Items for which its run() has returned an ItemError."""
    waited_for_permits_s: float = 0.0
    """Seconds for which it has waited for permits of limits."""
    waits: dict[str, float] | None = None
    """Seconds waited, by limit; None: it has asked none."""
    began: float = 0.0
    """Monotonic time when its worker got it, if that runs several at once."""
    isolation: Isolation | None = None
    """There if it has failed, and its items are run apart."""

    def hand_over(self, items: int, at: float, *, loads: bool) -> None:
        """Record that its worker gets it: with so many items by its message, at this time by the wall clock.

        Args:
            loads: the worker reads or copies the data first, and reports when it has done so.
        """
        self.items, self.handed_over, self.loads = items, at, loads

    @property
    def runs_alone(self) -> bool:
        """Return whether nothing may be queued behind it, since it may kill its worker."""
        return self.isolation is not None or self.delivery.is_suspect


@dataclass(slots=True)
class InFlight:
    """The deliveries that a worker was given and has not answered."""

    assignments: deque[Assignment] = field(default_factory=deque)
    head_since: float = 0.0
    """Monotonic time since when the head can have been running."""
    width: int = 1
    """The number of mini-batches that it runs at once."""
    is_closed: bool = False
    """True if it holds a delivery that must run alone."""

    def __len__(self) -> int:
        return len(self.assignments)

    def has(self, mini_batch: int) -> bool:
        """Return whether a delivery of this mini-batch is among them."""
        return any(each.delivery.mini_batch == mini_batch for each in self.assignments)

    def running_s(self, now: float) -> float:
        """Return how long the head has been running; 0 when there is none."""
        return now - self.head_since if self.assignments else 0.0

    def holds_up(self, now: float) -> bool:
        """Return whether the head is unexpectedly slow, so that what waits for it should run elsewhere."""
        return self.running_s(now) > SLOW_HEAD_S

    def has_unread(self, now: float) -> bool:
        """Return whether something waits in the worker for a head that is unexpectedly slow."""
        return len(self.assignments) > 1 and self.holds_up(now)

    def loading_s(self, now: float) -> float:
        """Return how long the head's data have been read or copied; 0 once run() has been called."""
        head = self.assignments[0] if self.assignments else None
        return now - self.head_since if head is not None and head.loads and not head.loaded_at else 0.0

    def in_run_s(self, now: float) -> float:
        """Return how long the head has been in run(); 0 before."""
        if not self.assignments or self.loading_s(now):
            return 0.0
        return now - max(self.head_since, self.assignments[0].loaded_at)

    def room(self, depth: int, now: float) -> int:
        """Return how many more may be added when `depth` may be in flight; none after a head that
        is unexpectedly slow.
        """
        count = len(self.assignments)
        if self.is_closed or count >= depth or (count and now - self.head_since > SLOW_HEAD_S):
            return 0
        return depth - count

    def push(self, assignments: list[Assignment], now: float) -> None:
        """Add these at the end; one that must run alone comes alone."""
        if not self.assignments:
            self.head_since = now
        self.is_closed = self.is_closed or assignments[0].runs_alone
        self.assignments += assignments

    def answered(self, mini_batch: int, now: float) -> Assignment:
        """Record that the worker has answered for its head; the next one runs from now on.

        Raises:
            LookupError: the answer is for something else, so the worker can't be trusted any more. So do all below.
        """
        assignment = self._of(mini_batch, "answered for")
        self.head_since = now
        self.assignments.popleft()
        if not self.assignments:
            self.is_closed = False
        return assignment

    def loaded(self, mini_batch: int, items: int, load_s: float, now: float) -> None:
        """Record that the worker has read the head's data, and calls run() now."""
        head = self._of(mini_batch, "read")
        head.items, head.load_s, head.loaded_at = items, load_s, now

    def alive(self, now: float) -> None:
        """Take note of a sign of life, which says nothing about a worker that runs one mini-batch at a time."""

    def part(self, mini_batch: int, event: PartEvent, process: str, at: float, now: float) -> None:
        """Record that the worker has begun or ended a part of the head, whose items it runs apart. Each has the time
        of a run() of its own.

        Args:
            at: now, by the wall clock.
        """
        head = self.assignments[0] if self.assignments else None
        if head is None or head.delivery.mini_batch != mini_batch or head.isolation is None:
            raise LookupError(f"the worker has run a part of mini-batch {mini_batch}, which nobody has asked for")
        head.isolation.heard(event, process, at)
        head.loaded_at = now

    def set_aside(self, mini_batch: int, files: int) -> None:
        """Record the number of files for outputs in stores that the head's run() has written."""
        self._of(mini_batch, "set aside files of").files = files

    def warned(self, mini_batch: int, warnings: Sequence[DataWarning]) -> None:
        """Record the worker's warnings about the head's data."""
        self._of(mini_batch, "warned of").warnings = tuple(warnings)

    def items_failed(self, mini_batch: int, lost: list[LostItems]) -> None:
        """Record the items for which the run() of the head has returned an ItemError."""
        self._of(mini_batch, "lost items of").lost = tuple(lost)

    def waited(self, mini_batch: int, waited_s: float, waits: dict[str, float]) -> None:
        """Record for how long the head has waited for permits.

        Args:
            waits: the same by limit; more than `waited_s` if it has waited for several at once.
        """
        head = self._of(mini_batch, "waited for permits with")
        head.waited_for_permits_s, head.waits = waited_s, waits

    def _of(self, mini_batch: int, event: str) -> Assignment:
        """Return the assignment that an event of the worker is about, which is its head."""
        if not self.assignments or self.assignments[0].delivery.mini_batch != mini_batch:
            raise LookupError(f"the worker {event} mini-batch {mini_batch}, which is not the first in flight")
        return self.assignments[0]

    def take_back(self, mini_batches: Iterable[int]) -> list[Assignment]:
        """Remove these, which were taken back unread; returns them in order."""
        ids = set(mini_batches)
        removed = [each for each in self.assignments if each.delivery.mini_batch in ids]
        self.assignments = deque(each for each in self.assignments if each.delivery.mini_batch not in ids)
        self.is_closed = self.is_closed and bool(self.assignments)
        return removed

    def died(self, *, running: bool) -> tuple[list[tuple[Assignment, float]], list[Assignment]]:
        """The worker is dead: what it may have died of, if it was past init(), with the time since when that was run,
        and what it hadn't begun.
        """
        assignments = list(self.assignments)
        self.assignments.clear()
        self.is_closed = False
        begun = self.begun_of(assignments) if running else []
        return begun, assignments[len(begun) :]

    def running(self) -> list[tuple[Assignment, float]]:
        """Return those that the worker runs, and since when; the others wait in it."""
        return self.begun_of(list(self.assignments))

    def begun_of(self, assignments: list[Assignment]) -> list[tuple[Assignment, float]]:
        """Return those of the assignments, the first ones, that were run, and since when."""
        return [(assignments[0], self.head_since)] if assignments else []


def assignments_of(deliveries: Iterable[Delivery], *, can_retry_items: bool) -> list[Assignment]:
    """Return what is to be done for deliveries: all items are run where the job's items can't be run apart."""
    return [
        _of_retried(each, can_retry_items=can_retry_items) if is_retried(each.message) else Assignment(each)
        for each in deliveries
    ]


def _of_retried(delivery: Delivery, *, can_retry_items: bool) -> Assignment:
    try:
        message, items = retried_of(delivery.message)
    except CorruptLog:  # reported where it is handed out
        return Assignment(delivery)
    if items is None:
        return Assignment(delivery)
    assignment = Assignment(msgspec.structs.replace(delivery, message=message))
    if can_retry_items:
        assignment.isolation = Isolation.again(items)
    return assignment
