"""The job machine for a job whose script writes into folders of a store. Pure, no I/O.

A try that has written files is done when they are uploaded, and failed when they can't be. Meanwhile its worker goes
on, and the try counts as one that isn't reported yet. A worker that runs far ahead of its uploads would fill the disk:
beyond a few for each worker, nothing more is leased.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from parallelrun_agent.policy.commands import Commit, DropRest, ReportRestLost, UploadOutcome, UploadRest
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.worker import Exit, Worker
from parallelrun_core.wire.outcome import Failure, Outcome

_AHEAD: Final = 2
"""For each worker, uploads may be behind by so many times what it has in flight."""


class UploadingJobMachine(JobMachine):
    """A job on one node, through all of its sessions."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.apart.can_retry_items = False  # a file of some items would replace that of all of them
        self._uploads: dict[str, tuple[Outcome, Worker]] = {}
        """By their tokens, the outcomes that wait for their files."""
        self._ending: set[str] = set()
        """Workers that have ended, and have left files that are not uploaded yet."""

    def _begin_session(self) -> None:
        super()._begin_session()
        self._uploads, self._ending = {}, set()

    def _abandon(self, why: str) -> None:
        ending = self._ending
        super()._abandon(why)
        self._rest_is_lost(ending, "the node has lost its lease")

    @property
    def _begins_more(self) -> bool:
        most = _AHEAD * self._look_ahead.depth * max(1, len(self.workers))
        return super()._begins_more and len(self._uploads) <= most

    def _keep(self, outcome: Outcome, assignment: Assignment, worker: Worker) -> None:
        if not assignment.files or outcome.status != "done":
            super()._keep(outcome, assignment, worker)
            return
        self._uploads[outcome.token] = outcome, worker
        self.commands.append(UploadOutcome(worker, outcome.mini_batch, outcome.token))

    def uploaded(self, token: str, failure: Failure | None) -> None:
        """All files of a try are in the store, or this is why they can't be. One of an earlier session is ignored."""
        outcome, worker = self._uploads.pop(token, (None, None))
        if outcome is not None:
            self.commands.append(Commit(self._outcomes.failed(outcome, failure) if failure else outcome, worker))

    def exited(self, worker: Worker, end: Exit, now: float, *, unread: Sequence[int] = ()) -> None:
        is_in_order = worker.stage == "ending" and not end.code
        super().exited(worker, end, now, unread=unread)
        if is_in_order:
            self._ending.add(worker.process)
        self.commands.append(UploadRest(worker) if is_in_order else DropRest(worker))

    def rest_uploaded(self, process: str) -> None:
        """Record that what a worker has left is in the store, or can't be brought there."""
        self._ending.discard(process)

    def check_time(self, now: float) -> None:
        """Check the times as for any job; what is not uploaded when a drain is to be over is returned, as if it had not
        been run.

        If it is of no mini-batch, it is lost, and reported.
        """
        super().check_time(now)
        if now > self.membership.drain_by:
            for outcome, _ in self._uploads.values():
                self.deliveries.not_stored(outcome, now)
            self._uploads.clear()
            self._rest_is_lost(self._ending, "the node was told to stop")
            self._ending.clear()

    def _rest_is_lost(self, processes: set[str], why: str) -> None:
        words = f"What the worker has left at its end was not all uploaded: {why}."
        self.commands.extend(ReportRestLost(process, words) for process in sorted(processes))

    def _may_leave(self) -> bool:
        return super()._may_leave() and not self._ending
