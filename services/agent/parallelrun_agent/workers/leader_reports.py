"""Reports to the leader from a node: how init() and shutdown() went in its workers, what scripts have
spent, and what fails before all else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from parallelrun_agent.workers.error_files import ErrorFiles
from parallelrun_core.ids import new_session
from parallelrun_core.store.outcome_stream import report
from parallelrun_core.store.seals import Seal
from parallelrun_core.wire.costs import Spent
from parallelrun_core.wire.outcome import Failure, InitFailure, Outcome, Phase, PhaseName

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis


class LeaderReports:
    """Gathered until `send`. Errors also go to the files for the user, at once."""

    def __init__(self, redis: Redis, job_id: str, node: str, errors: ErrorFiles) -> None:
        self.has_news = False
        """There is something to send."""
        self._redis = redis
        self._job_id = job_id
        self._node = node
        self._errors = errors
        self._init_failures: list[InitFailure] = []
        self._phases: list[Phase] = []
        self._whole_failures: list[Outcome] = []
        self._spender = new_session(node)
        self._spent_nano = self._reported_nano = 0

    def init_failed(self, process: str, failure: Failure, after_s: float) -> None:
        """A worker didn't get through init(), or couldn't be started; without a name if there was none yet."""
        self._note(InitFailure(self._node, process, failure, started=time.time() - after_s, seconds=after_s))
        if process:
            self._errors.add_init(process, failure)

    def never_started(self, failure: Failure) -> None:
        """No worker can be started: for want of their environment or an input, or because their code is damaged."""
        self._note(InitFailure(self._node, "", failure))

    def _note(self, failure: InitFailure) -> None:
        self._init_failures.append(failure)
        self.has_news = True

    def phase_ended(self, process: str, name: PhaseName, seconds: float, failure: Failure | None = None) -> None:
        """A worker is through init() or shutdown(), which took so long."""
        self._phases.append(Phase(self._node, process, name, time.time() - seconds, seconds, failure))
        self.has_news = True
        if failure is not None:
            self._errors.add_shutdown(process, failure)

    def failed_whole(self, outcome: Outcome) -> None:
        """Gather the last failure of a mini-batch, whose items are not run apart yet."""
        self._whole_failures.append(outcome)
        self.has_news = True

    def spent(self, nano: int) -> None:
        """Take over what scripts have reported as cost on this node, since the job began here."""
        if nano != self._reported_nano:
            self._spent_nano = nano
            self.has_news = True

    def repeat_cost(self) -> None:
        """Report the cost again: Redis may have forgotten it."""
        self._reported_nano = 0
        self.spent(self._spent_nano)

    def send(self, seal: Seal) -> None:
        """Report all of it. Raises redis-py's errors, and can be repeated after one."""
        while self._init_failures:
            report(self._redis, self._job_id, "init_failed", self._init_failures[0], seal)
            self._init_failures.pop(0)
        if self._phases:
            report(self._redis, self._job_id, "phases", self._phases, seal)
            self._phases = []
        if self._whole_failures:
            report(self._redis, self._job_id, "whole_failures", self._whole_failures, seal)
            self._whole_failures = []
        if self._spent_nano != self._reported_nano:
            report(self._redis, self._job_id, "spent", Spent(self._spender, self._spent_nano), seal)
            self._reported_nano = self._spent_nano
        self.has_news = False
