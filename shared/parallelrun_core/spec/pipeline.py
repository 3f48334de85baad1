"""`PipelineSpec`: jobs that depend on each other's outputs, and what they have in common.

A pipeline is a job whose leader starts other jobs, its *steps*, and waits for them. Each step is a job like any other,
with an id, a folder, logs and retries of its own. What a step needs of an earlier one is an output of it: so the order
follows from the data, and steps that don't wait for each other run side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from parallelrun_core.errors import InvalidInput
from parallelrun_core.problems import validated
from parallelrun_core.spec.fields import AnyInput, JobName, Labels, Output
from parallelrun_core.spec.job import JobSpec
from parallelrun_core.spec.later_inputs import CarriedInput, Deferred, PipelineInput, StepInput, StepName, StepOutput
from parallelrun_core.spec.notify import Notified
from parallelrun_core.spec.problems import at, problem_of

MAX_TURNS: Final = 1000
"""Turns of one loop, which are steps of a pipeline (Azure ML's client allows as many of a `do_while`)."""
MAX_STEPS: Final = 1000
"""Steps of one pipeline, not counting those of the pipelines in it."""


class Loop(Deferred):
    """The turns of a loop, and the inputs that its body has in each."""

    type: Literal["parallel_for", "do_while"]
    items: dict[StepName, dict[str, AnyInput]] = Field(default_factory=dict, max_length=MAX_TURNS)
    """`parallel_for`: the names of the turns, each with the inputs of the body that are its own."""
    items_from: str = Field(default="", max_length=255)
    """`parallel_for`: the input of the pipeline that has the items, as JSON; empty: `items` has them."""
    carried: dict[str, CarriedInput] = Field(default_factory=dict)
    """`do_while`: inputs of the body that are outputs of the turn before; in the first turn, inputs of the pipeline."""
    condition: str = Field(default="", max_length=255)
    """`do_while`: the output of the body that holds true when another turn is to follow; empty: one always is."""
    max_turns: int = Field(default=MAX_TURNS, ge=1, le=MAX_TURNS)
    """`do_while`: most turns."""


class Condition(Deferred):
    """A condition: which steps run depends on a truth value, which is known when the step `of` has completed."""

    of: StepOutput | bool
    """An output that is a file with `true` or `false` in it, in any letter case; or the value itself."""
    is_true: bool = True
    """The value with which the step runs; with the other one, it is skipped."""


class Step(Deferred):
    """A job of the pipeline."""

    type: Literal["parallel", "command", "pipeline"]
    job: dict[str, Any]
    """The fields of a job spec, or of a pipeline's, without the inputs that are outputs of other steps."""
    inputs_from: dict[str, StepInput | PipelineInput] = Field(default_factory=dict)
    """Inputs of the job that are outputs of other steps, or inputs of the pipeline that were such outputs."""
    outputs_to: dict[str, str] = Field(default_factory=dict)
    """Names of the job's outputs, each with that of the pipeline's output which it is."""
    after: tuple[StepName, ...] = ()
    """Steps that must have completed, though no data of theirs is needed."""
    conditions: tuple[Condition, ...] = ()
    """All of them must hold; with one that doesn't, the step is skipped, and so is what needs its outputs."""
    code: str = ""
    """The name of its snapshot of code, once the pipeline is accepted."""
    turn: str = Field(default="", max_length=128)
    """The turn of a `do_while` that it is: equal steps of other turns are not reused."""
    is_deterministic: bool = True
    """True if equal inputs make equal outputs, so that those of an earlier, equal step can be reused."""

    def needs(self) -> frozenset[str]:
        """The steps that must have ended before this one can begin."""
        named = {each.step for each in self.inputs_from.values() if isinstance(each, StepInput)} | set(self.after)
        return frozenset(named | {each.of.step for each in self.conditions if isinstance(each.of, StepOutput)})

    @property
    def makes_assets(self) -> bool:
        """Return whether its outputs become assets when its job has completed. What is in one never changes again."""
        return self.type != "pipeline" and any(each.get("asset") for each in self.job.get("outputs", {}).values())

    def document(self, paths: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the job, with these paths and values for all of `inputs_from`, by their names there."""
        later_inputs = {name: each.resolved(paths[name]) for name, each in self.inputs_from.items()}
        return {**self.job, "inputs": {**self.job.get("inputs", {}), **later_inputs}}

    def job_spec(self, paths: Mapping[str, Any]) -> JobSpec:
        """The job spec of a step that is no pipeline.

        Raises:
            InvalidInput: with one problem for each wrong field.
        """
        return JobSpec.parse(self.document(paths))

    def pipeline_spec(self, paths: Mapping[str, Any]) -> PipelineSpec:
        """The spec of a step that is a pipeline.

        Raises:
            InvalidInput: with one problem for each wrong field.
        """
        return PipelineSpec.parse(self.document(paths))


class PipelineOutput(Output):
    """An output of the pipeline: that of a step, at this path if it has one."""

    model_config = ConfigDict(defer_build=True)

    of: StepOutput | None = None
    """The output of a step that it is; None: no step writes it."""


class PipelineSpec(Notified, Labels, Deferred):
    """A pipeline, with all expressions resolved but the paths of what its steps are going to write."""

    type: Literal["pipeline"] = "pipeline"
    name: JobName = "pipeline"
    """A label for people."""
    experiment: str = Field(default="", max_length=255)
    """For people: what the job belongs to."""

    inputs: dict[str, AnyInput] = Field(default_factory=dict)
    """The inputs of the pipeline; the steps' own ones have their values already."""
    outputs: dict[str, PipelineOutput] = Field(default_factory=dict)
    """By name; each is an output of a step."""
    steps: dict[StepName, Step] = Field(min_length=1, max_length=MAX_STEPS)
    loop: Loop | None = None
    """The turns of its only step, the body; null: each step runs once."""
    max_concurrency: int = Field(default=0, ge=0, le=MAX_STEPS)
    """Most steps that run at the same time; 0: as many as can."""

    continue_on_step_failure: bool = True
    """After a step has failed, start others that don't need it; otherwise, none. (Reference §2.1: true.)"""
    force_rerun: bool = False
    """Run every step, also one whose outputs an earlier, equal step has made."""
    resume_from: str = Field(default="", max_length=128)
    """Id of a pipeline that has ended: its finished steps are taken over by those that are equal to them."""

    @classmethod
    def parse(cls, document: object) -> Self:
        """Check the spec of a pipeline.

        Raises:
            InvalidInput: with one problem for each wrong field.
        """
        if not isinstance(document, dict):
            raise InvalidInput.at("", "a pipeline is a mapping of settings")
        return validated(cls, document, problem_of=problem_of)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, step in self.steps.items():
            for needed in sorted(step.needs()):
                if needed not in self.steps:
                    raise at(f"steps/{name}", f"it needs the step {needed!r}, and there is none")
        if self.loop is not None and len(self.steps) != 1:
            raise at("loop", f"a loop has one step, its body, and here are {len(self.steps)}")
        if self.resume_from and self.force_rerun:
            raise at("resume_from", "with force_rerun, nothing is taken over: leave one of them out")
        if cycle := self._cycle():
            names = ", ".join(map(repr, cycle))
            message = f"these steps wait for each other: {names}" if len(cycle) > 1 else "it waits for itself"
            raise at(f"steps/{cycle[0]}", message)
        return self

    def _cycle(self) -> list[str]:
        """Steps that wait for each other, without those that only wait for them."""
        done = set(self.order())
        waiting = {name: step.needs() - done for name, step in self.steps.items() if name not in done}
        while (needed := {name for needs in waiting.values() for name in needs}) < waiting.keys():
            waiting = {name: needs for name, needs in waiting.items() if name in needed}
        return list(waiting)

    def order(self) -> list[str]:
        """The steps, each after all that it needs; without those that wait for each other."""
        order: dict[str, None] = {}
        waiting = {name: step.needs() for name, step in self.steps.items()}
        while ready := [name for name, needs in waiting.items() if needs <= order.keys()]:
            order |= dict.fromkeys(ready)
            waiting = {name: needs for name, needs in waiting.items() if name not in order}
        return list(order)
