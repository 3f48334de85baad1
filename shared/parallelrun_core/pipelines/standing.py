"""The standing of a pipeline's steps: from what was decided about them, and from how their jobs have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from parallelrun_core.documents.schema import decode
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult, Reopening
from parallelrun_core.pipelines.records import StepRecord, read_records
from parallelrun_core.pipelines.turns import unrolled
from parallelrun_core.spec.pipeline import PipelineSpec, Step
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, StepState

_ENDED = {
    JobState.COMPLETED: StepState.COMPLETED, JobState.FAILED: StepState.FAILED, JobState.CANCELED: StepState.CANCELED,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStanding:
    state: StepState
    record: StepRecord | None = None
    """The last decision about it, perhaps in an earlier generation of the pipeline; None: there was none yet."""
    result: JobResult | None = None
    """The result of its job, if one has run, or of the job of which it reuses the outputs."""
    job_generation: int = 0
    """The one in which its job has ended, or runs."""

    @property
    def job_id(self) -> str:
        """The job that runs the step, has run it, or has made the outputs that it reuses; empty: there is none."""
        return self.record.job if self.record is not None else ""

    @property
    def why(self) -> str:
        """Why that was decided, for people."""
        return self.record.why if self.record is not None else ""

    @property
    def is_reused(self) -> bool:
        """Return whether its outputs are those of a step that has run before."""
        return self.record is not None and self.record.action == "reuse"

    @property
    def made(self) -> str:
        """Identifies what it has made: another run of it makes something else."""
        return f"{self.job_id}/{self.job_generation}"


def end_of(folder: JobFolder, generation: int) -> tuple[int, JobResult | None]:
    """Return how a job has ended in this generation or a later one, if it has."""
    generation = max(generation, folder.generation())
    path = folder.layout.result(generation)
    try:
        return generation, decode(path.read_bytes(), JobResult, path)
    except FileNotFoundError:
        return generation, None


def standings(
    folder: JobFolder,
    spec: PipelineSpec,
    *,
    records: Mapping[str, Sequence[StepRecord]] | None = None,
    end: Callable[[JobFolder, int], tuple[int, JobResult | None]] = end_of,
) -> dict[str, StepStanding]:
    """Return how each step, or each turn of a loop, stands in the present generation of the pipeline, in an order in
    which they can run.

    Args:
        records: as `read_records` reads them, if the caller has them.
        end: what is asked how a job has ended.

    Raises:
        CorruptLog: a decision can't be read. A step of which the job's result can't be read has failed.
        NewerSchema: a newer release has written one of them.
    """
    records = read_records(folder) if records is None else records
    spec = unrolled(spec, records)
    reopenings = folder.reopenings()
    generation = folder.generation()
    reopening = reopenings[-1] if reopenings else None
    by_step: dict[str, StepStanding] = {}
    for step in spec.order():
        decided = records.get(step)
        if decided is None:
            by_step[step] = StepStanding(state=StepState.WAITING)
            continue
        standing = _by(decided[-1], folder.root, end)
        if decided[-1].generation < generation and not _still_holds(standing, spec, step, by_step, reopening):
            standing = StepStanding(
                state=StepState.WAITING,
                record=standing.record,
                result=standing.result,
                job_generation=standing.job_generation,
            )
        by_step[step] = standing
    return by_step


def _by(record: StepRecord, root: Path, end: Callable[[JobFolder, int], tuple[int, JobResult | None]]) -> StepStanding:
    match record.action:
        case "skip":
            return StepStanding(state=StepState.SKIPPED, record=record)
        case "fail":
            return StepStanding(state=StepState.FAILED, record=record)
    try:
        generation, result = end(JobFolder(root, record.job), record.job_generation)
    except CorruptLog as error:
        generation, result = record.job_generation, _damaged(record, str(error))
    if record.action == "reuse":
        return StepStanding(
            state=StepState.COMPLETED, record=record, result=result, job_generation=record.job_generation
        )
    state = StepState.RUNNING if result is None else _ENDED[result.state]
    return StepStanding(state=state, record=record, result=result, job_generation=generation)


def _damaged(record: StepRecord, why: str) -> JobResult | None:
    """Return what stands in for a result that can't be read; of a job whose outputs are only reused, none is needed."""
    if record.action == "reuse":
        return None
    hint = "put that file back, for instance from a backup; or resume the pipeline, which runs the step again"
    failure = JobFailure(code="JOB_DAMAGED", summary=f"How the job has ended can't be read: {why}", hint=hint)
    return JobResult(
        job_id=record.job, state=JobState.FAILED, started=None, ended=record.at, progress=Progress(), failure=failure
    )


def _still_holds(
    standing: StepStanding,
    spec: PipelineSpec,
    step: str,
    by_step: Mapping[str, StepStanding],
    reopening: Reopening | None,
) -> bool:
    """Return whether what a step has made in an earlier generation of the pipeline is what it would make now."""
    if standing.state is not StepState.COMPLETED:
        return standing.state is StepState.RUNNING
    if reopening is not None and reopening.retry_failed and can_be_retried(standing, spec.steps[step]):
        return False
    return is_upon(standing.record, spec, step, by_step)


def can_be_retried(standing: StepStanding, step: Step) -> bool:
    """Return whether what has failed in the job of a step that has completed can be tried again there.

    Where it would write, there must be no version of an asset; nor what another pipeline has made.
    """
    if standing.result is None or standing.is_reused or step.makes_assets:
        return False
    return bool(standing.result.progress.failed or standing.result.progress.items_failed)


def is_upon(record: StepRecord | None, spec: PipelineSpec, step: str, by_step: Mapping[str, StepStanding]) -> bool:
    """Return whether a step was given what the steps that it needs have made last."""
    upon = record.upon if record is not None else {}
    needs = spec.steps[step].needs()
    return all(by_step[each].state is StepState.COMPLETED and upon.get(each) == by_step[each].made for each in needs)
