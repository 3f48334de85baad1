"""Why a pipeline failed: the step that failed first, its job, and the first cause there. Pure, no I/O."""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.states import StepState

CODE: Final = "STEP_FAILED"
_HINT: Final = (
    "the job of that step has the whole story: `parallelrun job show {job}`. Once the cause is gone, `parallelrun job "
    "resume` of the pipeline runs what is not done, and keeps what is"
)


class EndedStep(NamedTuple):
    """The end of a step, from which the failure of a pipeline is made."""

    step: str
    state: StepState
    job_id: str = ""
    """Empty: it was never started."""
    why: str = ""
    failure: JobFailure | None = None
    ended: float = inf


def failure_of(steps: list[EndedStep]) -> JobFailure:
    """The failure of a pipeline of which these steps have failed or were canceled.

    A pipeline without any has steps that were skipped because of what has been mended since.
    """
    failed = sorted((each for each in steps if each.state is not StepState.SKIPPED), key=lambda each: each.ended)
    if not failed:
        skipped = ", ".join(repr(each.step) for each in steps) or "some"
        return JobFailure(
            code=CODE,
            summary=f"The steps {skipped} were skipped, because others had failed that have completed since.",
            hint="resume the pipeline: it then runs what was skipped",
        )
    first, others = failed[0], len(failed) - 1
    more = f" So did {others:,} other step{'s' if others > 1 else ''}." if others else ""
    job = f" (job {first.job_id})" if first.job_id else ""
    if first.state is StepState.CANCELED:
        return JobFailure(
            code=CODE,
            summary=f"The step {first.step!r}{job} was canceled.{more}",
            hint="resume the pipeline to let it go on",
        )
    cause = first.failure
    if cause is None:
        return JobFailure(code=CODE, summary=f"The step {first.step!r}{job} has failed: {first.why}.{more}")
    return JobFailure(
        code=CODE,
        summary=f"The step {first.step!r}{job} has failed: {cause.summary}{more}",
        error_category=cause.error_category,
        first_cause=cause.first_cause or cause.summary,
        traceback=cause.traceback,
        sample_mini_batches=cause.sample_mini_batches,
        hint=cause.hint or _HINT.format(job=first.job_id),
    )
