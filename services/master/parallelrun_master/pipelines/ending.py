"""The end of a pipeline: the result is recorded, first in its folder and then on Redis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.metrics import last_values
from parallelrun_core.folder.records import JobResult
from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.service import failpoints
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, StepState
from parallelrun_master.outbox.entries import enqueue
from parallelrun_master.pipelines.reports import PipelineReports
from parallelrun_master.policy.failed_steps import EndedStep, failure_of

_MOST_WARNINGS: Final = 50
_NO_COUNTS: Final = (
    "listing_done", "all_found", "chosen_size", "chosen_why", "nodes_why", "workers", "queued_at", "worked_from",
    "recent_from", "recent_to", "recent_mini_batches", "recent_items", "waits_s",
)  # fmt: skip


@dataclass(eq=False)
class Ending:
    """Concludes one pipeline, and retires it.

    Args:
        destinations: the folders of notes in which its end belongs.
        check_turn: raises `Fenced` when the pipeline is no longer the caller's to lead.
    """

    folder: JobFolder
    queue: LeaderQueue
    registry: Registry
    reports: PipelineReports
    destinations: Sequence[Path]
    check_turn: Callable[[], object]

    def conclude(self, state: JobState, by_step: Mapping[str, StepStanding], warnings: Sequence[str] = ()) -> None:
        """Record how the pipeline has ended, now that none of its steps runs.

        Args:
            warnings: those that are about the pipeline itself.

        Raises:
            Fenced: another turn has begun, which does it.
        """
        job_id = self.folder.job_id
        if state is JobState.FAILED:
            self._move(JobState.FAILED, failure_of(_bad(by_step)))
        elif state is JobState.COMPLETED:
            self._move(JobState.FINALIZING)  # so nobody is told from now on that it is canceled
        status = self.registry.status(job_id)
        failpoints.reach("finish.before_result")
        result = JobResult(
            job_id=job_id,
            state=status.state if status.state.is_terminal else state,
            started=status.started,
            ended=self.registry.now(),
            progress=summed(by_step),
            warnings=[*warnings, *_warnings(by_step)][:_MOST_WARNINGS],
            failure=status.failure,
            metrics=last_values(self.folder.logs),
        )
        self.check_turn()
        self.reports.conclude(result, by_step)
        for notes in self.destinations:
            enqueue(notes, job_id, self.queue.generation)
        self.folder.conclude(result, generation=self.queue.generation)
        failpoints.reach("finish.after_result")

    def retire(self) -> None:
        """Show the recorded end on Redis, which may have forgotten it since, and take the pipeline off the list."""
        result = self.folder.result()
        if result is None:
            return
        end = result.state
        state = self.registry.state(self.folder.job_id)
        if end is JobState.COMPLETED and state in (JobState.QUEUED, JobState.PROCESSING):
            self._move(JobState.PROCESSING)
            self._move(JobState.FINALIZING)
        if state is not end:
            self._move(end, result.failure)
        progress = msgspec.json.encode(result.progress)
        self.queue.show({"progress": progress, "ended": repr(result.ended)}, event=("end", msgspec.json.encode(end)))
        self.registry.retire(self.folder.job_id, term=self.queue.term)

    def _move(self, to: JobState, failure: JobFailure | None = None) -> None:
        """Move the pipeline to a state, unless somebody else was faster."""
        try:
            self.registry.move(self.folder.job_id, to, failure, term=self.queue.term)
        except (Conflict, NotFound) as error:
            self.reports.log.info(f"The pipeline can't become {to}: {error}")


def summed(by_step: Mapping[str, StepStanding]) -> Progress:
    """The counts of all jobs that have run for the pipeline."""
    total = Progress(listing_done=True)
    for standing in by_step.values():
        if standing.result is None or standing.is_reused:
            continue
        counts = standing.result.progress
        for name in Progress.__struct_fields__:
            if name not in _NO_COUNTS:
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        for limit, seconds in counts.waits_s.items():
            total.waits_s[limit] = total.waits_s.get(limit, 0.0) + seconds
    return total


def _bad(by_step: Mapping[str, StepStanding]) -> list[EndedStep]:
    """The steps that keep the pipeline from having completed."""
    return [
        EndedStep(
            name,
            each.state,
            each.job_id,
            each.why,
            each.result.failure if each.result is not None else None,
            each.result.ended if each.result is not None else each.record.at if each.record is not None else 0.0,
        )
        for name, each in by_step.items()
        if each.state in (StepState.FAILED, StepState.CANCELED)
        or (each.state is StepState.SKIPPED and each.record is not None and each.record.is_failure)
    ]


def _warnings(by_step: Mapping[str, StepStanding]) -> list[str]:
    """Return the warnings of its steps' jobs, with the names of the steps."""
    warnings = []
    for name, standing in by_step.items():
        if standing.state is StepState.COMPLETED and standing.result is not None:
            warnings += [f"{name}: {warning}" for warning in standing.result.warnings]
    return warnings
