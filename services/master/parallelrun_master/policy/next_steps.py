"""The next steps of a pipeline: which begin, which never will, and how it ends. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parallelrun_core.spec.later_inputs import StepOutput
from parallelrun_core.spec.pipeline import Condition, PipelineSpec
from parallelrun_core.wire.states import JobState, StepState


@dataclass(frozen=True, slots=True)
class SkipStep:
    """Why a step is not run in this generation of the pipeline."""

    why: str
    is_failure: bool
    """Because of a step that has failed, and not by a condition."""


@dataclass(slots=True)
class Next:
    """The actions that are due now. With nothing in it, the pipeline waits."""

    begin: list[str] = field(default_factory=list)
    """Steps that have all that they need."""
    skip: dict[str, SkipStep] = field(default_factory=dict)
    cancel: list[str] = field(default_factory=list)
    """Steps that run and are not to."""
    end: JobState | None = None
    """The end of the pipeline, once nothing of it runs any more."""


def next_steps(
    spec: PipelineSpec,
    order: Sequence[str],
    states: Mapping[str, StepState],
    truths: Mapping[StepOutput, bool],
    failures: frozenset[str] = frozenset(),
    *,
    is_canceled: bool = False,
) -> Next:
    """Return what to do, as the steps stand.

    Args:
        order: the steps, each after all that it needs.
        truths: what conditions are about, as far as it is known: without one, the step begins, and finds out why.
        failures: of the steps that were skipped, those for which a failure is the reason.
        is_canceled: somebody has canceled the pipeline.
    """
    step_states, following = dict(states), Next()
    has_failed = bool(failures) or any(state in (StepState.FAILED, StepState.CANCELED) for state in states.values())
    is_ending = is_canceled or (has_failed and not spec.continue_on_step_failure)
    bad = set(failures)
    for name in order if not is_canceled else ():
        if step_states[name] is not StepState.WAITING:
            continue
        skip = _skip(spec, name, step_states, truths, bad)
        if skip is None and is_ending:
            skip = SkipStep("another step has failed, and continue_on_step_failure is false", is_failure=True)
        if skip is not None:
            following.skip[name], step_states[name] = skip, StepState.SKIPPED
            bad |= {name} if skip.is_failure else set()
        elif all(step_states[each] is StepState.COMPLETED for each in spec.steps[name].needs()):
            following.begin.append(name)
    running = [name for name in order if step_states[name] is StepState.RUNNING]
    if spec.max_concurrency:
        following.begin = following.begin[: max(0, spec.max_concurrency - len(running))]
    if is_ending:
        following.cancel = running
    if running or following.begin or (not is_canceled and StepState.WAITING in step_states.values()):
        return following
    following.end = JobState.CANCELED if is_canceled else JobState.FAILED if has_failed or bad else JobState.COMPLETED
    return following


def _skip(
    spec: PipelineSpec,
    name: str,
    states: Mapping[str, StepState],
    truths: Mapping[StepOutput, bool],
    bad: set[str],
) -> SkipStep | None:
    """Why a step that waits will never begin, if that is certain."""
    step = spec.steps[name]
    for needed in sorted(step.needs()):
        match states[needed]:
            case StepState.FAILED:
                return SkipStep(f"it needs the step {needed!r}, which has failed", is_failure=True)
            case StepState.CANCELED:
                return SkipStep(f"it needs the step {needed!r}, which was canceled", is_failure=True)
            case StepState.SKIPPED:
                return SkipStep(f"it needs the step {needed!r}, which was skipped", is_failure=needed in bad)
    for condition in step.conditions:
        truth = condition.of if isinstance(condition.of, bool) else truths.get(condition.of)
        if truth is not None and truth is not condition.is_true:
            return SkipStep(f"{_named(condition)} is {str(truth).lower()}", is_failure=False)
    return None


def _named(condition: Condition) -> str:
    of = condition.of
    return "its condition" if isinstance(of, bool) else f"its condition, the output {of.output!r} of {of.step!r},"
