"""Early questions: a node asks how a job goes on before it has to. Pure, no I/O.

The leader of a job that chooses the size of its mini-batches cuts no others before it knows how long enough of them
took. So it and its nodes wait for each other: neither gathers what it has, and a node with an idle worker asks soon.
"""

from __future__ import annotations

from typing import Final

from parallelrun_agent.policy.worker import NEVER
from parallelrun_core.spec import JobSpec

_AT_REST_S: Final = 0.02
"""So soon after it has reported all that it had, a node asks whether that was the last of the job."""
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.005, 0.04
"""So soon it asks for mini-batches that the leader is about to cut, and then after twice as long each time, up to the
second."""


class Asking:
    """Decides when one session asks about one job."""

    def __init__(self, spec: JobSpec) -> None:
        self.at = NEVER
        """When to ask; NEVER: no sooner than it must."""
        self.chooses_size = spec.size.is_auto
        self._pause_s = _FIRST_PAUSE_S

    def is_awaited(self, ready: int) -> bool:
        """Return whether the leader may wait for what ends here, as so many mini-batches are ready."""
        return self.chooses_size and not ready

    def answered(self, ready: int, now: float, has_reported: bool, *, is_idle: bool, is_at_rest: bool) -> None:
        """Take note of a turn.

        Args:
            is_idle: a worker here has nothing to do.
            is_at_rest: the turn has reported all that there was to do here.
        """
        if has_reported:
            self._pause_s = _FIRST_PAUSE_S
        self.at = NEVER
        if not self.chooses_size:
            if is_at_rest:
                self.at = now + _AT_REST_S
        elif is_idle and self._pause_s <= _LAST_PAUSE_S:
            self.at = now if ready else now + self._pause_s
            self._pause_s *= 2
