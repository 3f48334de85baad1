"""Failures before anything has succeeded: how little is begun then, until the leader has seen what they have in common.

A mini-batch that fails at once takes a millisecond, so a node could run a whole job before the leader, which looks at
failures as they come in, can give it up (`fail_fast`). Pure, no I/O.
"""

from __future__ import annotations

from typing import Final

from parallelrun_agent.policy.worker import NEVER
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import fewest_failures
from parallelrun_core.wire.outcome import Outcome

_PAUSE_S: Final = 0.1
"""Between two mini-batches of a worker: some of the leader's rounds."""
LEADER_LOOKS_S: Final = 2.0
"""Seconds after which the leader has looked at what has failed; then the job goes on."""


class EarlyFailures:
    """Watches how mini-batches end on this node, as long as none of them has been done.

    Args:
        limit: the most workers that the job may have on this node.
    """

    def __init__(self, spec: JobSpec, limit: int) -> None:
        self.pause_until = NEVER
        """Until when nothing more is leased; NEVER: it isn't paused."""
        self.is_open = bool(spec.fail_fast)
        """Nothing has succeeded yet, and the job may be given up: how long a try takes that fails says nothing of how
        many mini-batches a worker should have ahead."""
        self._fewest = fewest_failures(limit)
        self._failed = 0
        self._paused_since = NEVER

    def concluded(self, outcome: Outcome) -> None:
        """Record how a mini-batch has ended, or would have if its items were not run apart."""
        if outcome.status == "done":
            self.is_open = False
        self._failed += outcome.status == "failed"

    def leased(self, now: float) -> None:
        """Pause after mini-batches that were leased when enough had failed for the job to be given up."""
        if not self.is_open or self._failed < self._fewest:
            return
        if self._paused_since == NEVER:
            self._paused_since = now
        self.is_open = now < self._paused_since + LEADER_LOOKS_S
        self.pause_until = now + _PAUSE_S

    def pauses(self, now: float) -> bool:
        """Return whether nothing more is to be leased now."""
        if not self.is_open or now >= self.pause_until:
            self.pause_until = NEVER
        return self.pause_until != NEVER
