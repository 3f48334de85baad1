"""Early questions: a node asks how a job goes on before it has to. Pure, no I/O.

A node polls all jobs for what is ready, each `AgentSettings.poll_seconds`. That is too seldom at the end of a job, and
for one that chooses the size of its mini-batches: its leader cuts no others before it knows how long enough of them
took. So it and its nodes wait for each other: neither gathers what it has, and a node with an idle worker asks soon.
"""

from __future__ import annotations

from typing import Final

from parallelrun_agent.policy.worker import NEVER
from parallelrun_core.spec import JobSpec

_AT_REST_S: Final = 0.02
_CUTTING_S: Final = (0.005, 0.01, 0.02, 0.04)
"""Pauses before questions in a row. A leader that has cut nothing by then is busy with more, and polls find it out."""


class EarlyQuestions:
    """Decides when a session asks: once all is reported that there was to do here, as that may have been the last of
    the job; or, where the leader may be about to cut mini-batches, a few times after each report while a worker is
    idle.
    """

    def __init__(self, spec: JobSpec) -> None:
        self.at = NEVER
        """When to ask; NEVER: no sooner than it must."""
        self._waits_for_cuts = spec.size.is_auto
        self._pauses_s = iter(_CUTTING_S)

    def answered(self, ready: int, now: float, *, has_reported: bool, is_idle: bool, is_at_rest: bool) -> None:
        """Take note of a turn, after which so many mini-batches are ready.

        Args:
            is_idle: a worker here has nothing to do.
            is_at_rest: there is nothing to do here, nor to report.
        """
        self.at = NEVER
        if not self._waits_for_cuts:
            if has_reported and is_at_rest:
                self.at = now + _AT_REST_S
            return
        if has_reported:
            self._pauses_s = iter(_CUTTING_S)
        if is_idle and (pause_s := next(self._pauses_s, None)) is not None:
            self.at = now if ready else now + pause_s
