"""The mini-batches of a session that have failed for good, and whose items are to be run apart. Pure, no I/O.

While nothing has succeeded here, halving begins late: the leader first sees whether all mini-batches of the job fail
alike, since no item is to blame then (`fail_fast`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from parallelrun_agent.policy.early_failures import LEADER_LOOKS_S
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.isolation import ISOLATABLE, Isolation
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import fewest_failures
from parallelrun_core.wire.outcome import Failure, Outcome

_MOST_IN_VAIN: Final = 3
"""While nothing has succeeded here, the items of so many mini-batches are run apart, and then of no more."""
_LONGEST_S: Final = 10.0
_MOST_HELD_BACK: Final = 10_000


class ApartQueue:
    """The mini-batches that wait for a worker which runs their items apart.

    Args:
        limit: the most workers that the job may have on this node.
    """

    def __init__(self, spec: JobSpec, limit: int) -> None:
        self.can_isolate = spec.on_failure == "isolate" and spec.mini_batches_in_flight == 1
        """False also with several in flight, as nobody knows which of them killed a worker."""
        self.can_retry_items = self.can_isolate
        """False: all items of a mini-batch are run again when a user has some of them tried again."""
        self.waiting: list[Assignment] = []
        """Those whose items are run apart, as soon as there is a worker."""
        self.held_back: list[Assignment] = []
        """Those that the leader sees first."""
        self._count = 0
        """How many were held back at the last `release`."""
        self._held_since = self._held_last = 0.0
        self._holds_back = bool(spec.fail_fast)
        self._fewest = fewest_failures(limit)
        self.has_succeeded = False
        """True if a mini-batch of the job has been done here."""
        self._in_vain = 0
        """Mini-batches of which no item went well when they were run apart."""

    def __len__(self) -> int:
        return len(self.waiting)

    def takes(self, outcome: Outcome) -> bool:
        """Return whether the items of a mini-batch with this outcome are run apart: not if all fail anyway."""
        if outcome.failure is None or (self._in_vain >= _MOST_IN_VAIN and not self.has_succeeded):
            return False
        can_help = outcome.items > 1 and outcome.failure.category in ISOLATABLE
        return self.can_isolate and outcome.status == "failed" and can_help

    def takes_without(self, assignment: Assignment, outcome: Outcome, missing: Mapping[int, Failure]) -> bool:
        """Return whether the items of a mini-batch are run apart of which some can't be brought here: these fail.

        Args:
            outcome: of its last try.
            missing: by their indexes, why they can't.
        """
        if not self.can_isolate or outcome.status != "failed" or outcome.failure is None:
            return False
        if not missing or len(missing) >= outcome.items:
            return False
        assignment.isolation = Isolation.of(outcome, outcome.failure)
        assignment.isolation.failed.update({(index, 1): failure for index, failure in missing.items()})
        return True

    def add(self, assignment: Assignment, outcome: Outcome) -> bool:
        """Add a mini-batch that has failed for good; returns whether it is held back until the leader has looked."""
        if outcome.failure is not None:
            assignment.isolation = Isolation.of(outcome, outcome.failure)
        if not self._holds_back or self.has_succeeded:
            self.waiting.append(assignment)
            return False
        self.held_back.append(assignment)
        return True

    def return_to(self, isolated: list[Assignment]) -> None:
        """Add those that no worker can run now: what is known of them is not given back."""
        self.waiting += isolated

    def concluded(self, outcome: Outcome, *, was_apart: bool) -> None:
        """Record how a mini-batch has ended."""
        self._in_vain += was_apart and outcome.status == "failed"
        self.has_succeeded = self.has_succeeded or outcome.status == "done"

    def release(self, now: float, *, is_idle: bool, nodes: int) -> None:
        """Let those that are held back be run apart: something has succeeded here, or the leader has had the time to
        see what they have in common, or they are too few for that.

        Args:
            is_idle: nothing else is to be run here.
            nodes: how many work for the job; 0: unknown.
        """
        count = len(self.held_back)
        if count != self._count:
            self._held_since = self._held_since if self._count else now
            self._count, self._held_last = count, now
        may_be_enough = count * max(1, nodes) >= self._fewest
        is_due = is_idle and (not may_be_enough or now - self._held_last >= LEADER_LOOKS_S)
        is_late = count >= 2 * self._fewest and now - self._held_since >= _LONGEST_S
        if self.has_succeeded or is_due or is_late or count >= _MOST_HELD_BACK:
            self.waiting += self.held_back
            self.held_back, self._count = [], 0

    def take(self) -> list[Assignment]:
        """Take all that wait for a worker."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def clear(self) -> list[Assignment]:
        """Forget all of them; returns them."""
        forgotten = self.waiting + self.held_back
        self.waiting, self.held_back, self._count = [], [], 0
        return forgotten
