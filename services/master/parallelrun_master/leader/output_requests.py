"""Requests for the output of a job: its leader asks for concatenations until one of them has made it."""

from __future__ import annotations

from collections.abc import Iterable

from parallelrun_core.store.concatenation_lock import release_concatenation
from parallelrun_core.store.outcome_stream import Concatenated, StreamEntry
from parallelrun_core.store.rq.wake import ask_for_concatenation, has_concatenation_failed, is_concatenation_waiting
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.policy.concatenation import ConcatenationPolicy, ConcatenationStep


class OutputRequests:
    """The requests of one leader for the output of its job."""

    def __init__(self, job: JobContext) -> None:
        self._job = job
        self._policy = ConcatenationPolicy(job.queue.term)
        self._asked = set[str]()
        """Attempts, whose names begin with the leader's term: nobody else asks for them."""
        self._postponed: Concatenated | None = None
        """A concatenator's report that it can't make the output now."""
        self.made: Concatenated | None = None
        """What a concatenator has reported, perhaps at the request of an earlier leader."""

    def start_over(self) -> None:
        """The job is finalized anew: requests and pauses begin again."""
        self._policy = ConcatenationPolicy(self._job.queue.term)

    def note(self, entries: Iterable[StreamEntry]) -> None:
        """Take note of what concatenators report."""
        for report in (entry.concatenated for entry in entries if entry.concatenated is not None):
            if report.is_postponed:
                self._postponed = report
            elif report.generation == self._job.queue.generation:
                self.made = self.made or report
            else:
                self._job.restore_generation()

    def step(self, now: float) -> Concatenated | None:
        """Ask if it is time; returns what was made, or why it can't be, as soon as that is certain.

        Raises one of `CONNECTION_ERRORS` when Redis is away.
        """
        if self.made is None:
            self._check_latest(now)
            match self._policy.tick(now):
                case ConcatenationStep.GIVE_UP:
                    return Concatenated("", 0, "", problem=self._policy.problem)
                case ConcatenationStep.ASK:
                    self._ask(now)
        return self.made

    def _ask(self, now: float) -> None:
        job, policy = self._job, self._policy
        is_queued = is_concatenation_waiting(job.redis, job.job_id, attempt=policy.attempt)
        attempt = policy.ask(now, is_queued=is_queued)
        is_new = attempt not in self._asked
        self._asked.add(attempt)
        ask_for_concatenation(job.redis, job.job_id, attempt=attempt, is_new=is_new)

    def _check_latest(self, now: float) -> None:
        """Pass on to the policy what has become of the latest request."""
        job, policy, pause_s = self._job, self._policy, 0.0
        if has_concatenation_failed(job.redis, job.job_id, attempt=policy.attempt):
            release_concatenation(job.redis, job.job_id)
            pause_s = policy.died(now, crashes=job.queue.count_setback("concatenation_crashes"))
        elif job.queue.is_concatenating():
            policy.alive(now)
        if self._postponed is not None:
            problem, troubles = self._postponed.problem, 0
            if problem:
                job.log.warning("concatenation_trouble", problem=problem)
                troubles = job.queue.count_setback("concatenation_troubles")
            pause_s = policy.postponed(now, problem=problem, troubles=troubles)
            self._postponed = None
        if pause_s and not policy.problem:
            job.log.warning("concatenation_interrupted", again_in_s=pause_s)
