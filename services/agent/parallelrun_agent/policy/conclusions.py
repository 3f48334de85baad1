"""Conclusions of tries that have ended: an outcome is made durable, or items are run apart. Pure, no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from parallelrun_agent.policy.apart_queue import ApartQueue
from parallelrun_agent.policy.commands import Command, Commit, ReportFailure
from parallelrun_agent.policy.early_failures import EarlyFailures
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.membership import Membership
from parallelrun_agent.policy.outcomes import OutcomeBuilder, WorkerAnswer, cause_of_death, detail_of
from parallelrun_agent.policy.worker import Exit, Worker
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import Failure, Outcome, Use


@dataclass(eq=False)
class Conclusions:
    """Ends the tries of one job on one node.

    Args:
        commands: gets what is to be done for it.
        apart: gets the mini-batches whose items are to be run apart.
        early: is told how tries have ended.
        keep: has an outcome made durable.
        membership: while the node drains, nothing is begun here any more, so no items are run apart.
    """

    commands: deque[Command]
    outcomes: OutcomeBuilder
    apart: ApartQueue
    early: EarlyFailures
    keep: Callable[[Outcome, Assignment, Worker], None]
    spec: JobSpec
    membership: Membership

    def conclude(self, assignment: Assignment, worker: Worker, answer: WorkerAnswer, elapsed_s: float) -> None:
        """End a try with a worker's answer, or with what stands for it."""
        outcome = self.outcomes.build(assignment, worker, answer, elapsed_s)
        isolation = assignment.isolation
        if isolation is None and answer.failure is None and self.apart.has_succeeded:
            self.keep(outcome, assignment, worker)  # as nearly all: the first success has said all that one can say
            return
        if isolation is not None:
            outcome = isolation.outcome(outcome, detail_of(outcome.mini_batch, assignment.delivery.message))
        self.early.concluded(outcome)
        if isolation is None and not self.membership.is_draining and self.apart.takes(outcome):
            self.commands.append(ReportFailure(outcome, to_leader=self.apart.add(assignment, outcome)))
            return
        self.apart.concluded(outcome, was_apart=isolation is not None)
        self.keep(outcome, assignment, worker)

    def died(self, charged: Sequence[tuple[Assignment, float]], worker: Worker, end: Exit, now: float) -> None:
        """End the tries that are charged with the death of their worker.

        Args:
            charged: each with the time when it began.
        """
        failure = cause_of_death(end, reason=worker.kill_reason, spec=self.spec)
        # Of several, nobody knows whose they were.
        use = Use(peak_bytes=end.peak_bytes) if len(charged) == 1 else Use()
        process_s = 0.0 if self.spec.mini_batches_in_flight == 1 else -1.0
        for assignment, since in charged:
            isolation = None if self.membership.is_draining else assignment.isolation
            if isolation is not None and isolation.died(failure, worker.process, now - since):
                self.apart.return_to([assignment])
                continue
            answer = WorkerAnswer(
                assignment.delivery.mini_batch, run_s=now - since, process_s=process_s, use=use, failure=failure
            )
            self.conclude(assignment, worker, answer, now - since)

    def not_staged(
        self, assignment: Assignment, elapsed_s: float, failure: Failure, missing: Mapping[int, Failure]
    ) -> bool:
        """End a try whose files can't be brought here; returns whether the items that are here are run apart.

        Args:
            missing: by the index of the item, why its file is not here.
        """
        answer = WorkerAnswer(assignment.delivery.mini_batch, failure=failure)
        outcome = self.outcomes.build(assignment, None, answer, elapsed_s)
        self.early.concluded(outcome)
        if self.membership.is_draining or not self.apart.takes_without(assignment, outcome, missing):
            self.commands.append(Commit(outcome, None))
            return False
        self.commands.append(ReportFailure(outcome))
        return True
