"""Completion: when the processing of a job is complete, and how it ends. Pure, no I/O: counts, entries and times are
passed in."""

from __future__ import annotations

from typing import NamedTuple

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.outcome import InitFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.policy.init_watch import InitWatch
from parallelrun_master.policy.stall_watch import StallWatch, Workforce
from parallelrun_master.policy.thresholds import empty_input, nothing_returned, over_threshold


class End(NamedTuple):
    """The state that follows `processing`."""

    state: JobState
    failure: JobFailure | None = None


class Completion:
    """Decides how the processing of one job ends, as seen by one leader.

    Args:
        progress, errors: kept up to date by the ledger, read here.
    """

    def __init__(self, spec: JobSpec, progress: Progress, errors: ErrorGroups, now: float) -> None:
        self._spec = spec
        self._progress = progress
        self._errors = errors
        self._failure: JobFailure | None = None
        has_run = progress.decided > progress.resumed or progress.retried > 0
        self._inits = InitWatch(spec, now, has_run=has_run)
        self._stall = StallWatch(spec, now, has_run=has_run)

    # What happened

    def fail(self, failure: JobFailure | None) -> None:
        """The job must fail for this, unless it already fails for something else."""
        self._failure = self._failure or failure

    def scheduled(self, mini_batches: int, items: int, *, all_of_them: bool) -> None:
        """Take over the counts of the manifest."""
        self._progress.scheduled = mini_batches
        self._progress.items_scheduled = max(items, self._progress.items_done + self._progress.items_failed)
        self._progress.listing_done = all_of_them

    def published(self, next_id: int, now: float) -> None:
        """Mini-batches before this one are on Redis, or decided."""
        self._progress.published = next_id
        self._stall.published(now)

    def moved(self, now: float) -> None:
        """There was progress of some kind."""
        self._stall.moved(now)

    def stood_still(self, now: float) -> None:
        """There was no progress, for a reason that is not the job's: no node has a place for it, or Redis was away."""
        self._stall.stood_still(now)

    def prepares(self) -> None:
        """A node is still getting what its workers need."""
        self._inits.prepares()

    def recorded(self, now: float) -> None:
        """Tries have ended, and are recorded."""
        self._inits.ran()
        self._stall.has_run()
        self._stall.moved(now)
        self.fail(over_threshold(self._spec, self._progress, self._errors))

    def got_through_init(self) -> None:
        """Some worker got through init(): not all of them hang or fail there."""
        self._inits.ran()

    def init_failed(self, failure: InitFailure, slots: int, now: float) -> None:
        """A worker didn't get through init(), in a cluster with this number of slots."""
        if self._progress.running:  # only workers that are through init() are given any
            self._inits.ran()
        self.fail(self._inits.failed(failure, slots, now))

    def refresh(self, now: float, *, nodes: int, running: int, lost: int, workers: int = 0) -> None:
        """Check progress against the timeouts and thresholds.

        Args:
            nodes: that are alive and may work for the job.
            running: mini-batches that are with a worker.
            lost: deliveries that were lost since the last call.
            workers: processes that the job has.
        """
        progress = self._progress
        progress.running = min(running, max(0, progress.scheduled - progress.decided))
        self._progress.lost += lost
        self.fail(self._stall.stalled(now, Workforce(nodes, running, workers, progress.nodes_why)))
        self.fail(over_threshold(self._spec, self._progress, self._errors))

    # What follows from it

    @property
    def is_decided(self) -> bool:
        """Every mini-batch that there will be has a decision."""
        return self._progress.listing_done and self._progress.decided >= self._progress.scheduled

    def end(self) -> End | None:
        """Return how the job ends, as soon as that is certain."""
        if self._failure is not None:
            return End(JobState.FAILED, self._failure)
        if not self.is_decided:
            return None
        failure = over_threshold(self._spec, self._progress, self._errors)
        if not self._progress.scheduled:
            failure = empty_input(self._spec)
        elif failure is None and self._spec.writes_rows and self._progress.rows == 0:
            failure = self._without_rows()
        return End(JobState.FAILED if failure else JobState.FINALIZING, failure)

    def _without_rows(self) -> JobFailure | None:
        """Return the failure of a job whose run() has returned no row; None: its output may be empty."""
        progress = self._progress
        if self._spec.empty_output == "complete" and progress.failed < progress.scheduled - progress.empty:
            return None
        return nothing_returned(self._spec, progress, self._errors)
