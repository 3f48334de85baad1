"""Conditions of the steps of a pipeline. Pure, no I/O."""

from __future__ import annotations

import msgspec

from parallelrun_core.answers.jobs import Job, PipelineStep
from parallelrun_core.answers.waiting import Explanation, RunCondition
from parallelrun_core.wire.states import TERMINAL, StepState


def explain_pipeline(pipeline: Job, explained: Explanation) -> Explanation:
    """Return the explanation of a pipeline with a condition for each step that has not ended.

    Args:
        explained: that of the pipeline by itself: that a master leads it.
    """
    if pipeline.state in TERMINAL:
        return explained
    by_name = {step.name: step for step in pipeline.steps}
    open_steps = [step for step in pipeline.steps if not StepState(step.state).has_ended]
    conditions = [*explained.conditions, *(_of_step(step, by_name) for step in open_steps)]
    running = [step for step in open_steps if step.state == StepState.RUNNING]
    if not running:
        return msgspec.structs.replace(explained, conditions=conditions)
    names = ", ".join(step.name for step in running[:3]) + (", …" if len(running) > 3 else "")
    advice = f"`parallelrun job explain {running[0].job}` explains step {running[0].name}"
    return msgspec.structs.replace(
        explained, runs=True, answer=f"now running: {names}", advice=advice, conditions=conditions
    )


def _of_step(step: PipelineStep, by_name: dict[str, PipelineStep]) -> RunCondition:
    name = f"step {step.name}"
    if step.state == StepState.RUNNING:
        return RunCondition(name=name, state="met", text=f"it runs as job {step.job}")
    open_needs = [each for each in step.needs if each in by_name and not StepState(by_name[each].state).has_ended]
    if not open_needs:
        return RunCondition(name=name, state="waits", text="it begins within a moment")
    words = ", ".join(f"{each} ({by_name[each].state})" for each in open_needs)
    return RunCondition(name=name, state="waits", text=f"it needs {words}")
