"""All steps of a pipeline, with those of the pipelines in it: for whoever checks, stores or shows them as a whole."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.job import JobSpec
from parallelrun_core.spec.later_inputs import StepInput
from parallelrun_core.spec.pipeline import PipelineSpec, Step

Spec = TypeVar("Spec", JobSpec, PipelineSpec)

MAX_DEPTH: Final = 8
"""Pipelines in pipelines."""
MAX_STEPS_IN_ALL: Final = 2000
"""Steps of a pipeline, with those of the pipelines in it."""
MAX_STEPS_READ: Final = 2 * MAX_STEPS_IN_ALL
"""The same, with the steps that are pipelines themselves."""
_LATER: Final = "/.parallelrun-later/"
"""What the path of an input begins with, here, that is known only once another step has ended."""


@dataclass(frozen=True)
class LeafStep:
    """A step that is a job, and no pipeline; its spec is complete but for the paths that are not known yet."""

    names: tuple[str, ...]
    """The names of the step, after those of the pipelines that it is in."""
    step: Step
    spec: JobSpec

    @property
    def pointer(self) -> str:
        """Return where the fields of its job are in the spec of the outermost pipeline."""
        return pointer_of(self.names)

    def checkable_spec(self) -> JobSpec:
        """Its spec without the inputs whose paths are not known yet: for checks only."""
        return known_part(self.spec)


def known_part(spec: JobSpec, later: Container[str] | None = None) -> JobSpec:
    """A spec without the inputs whose paths are not known yet: for checks of what is there when it is submitted.

    Args:
        later: their names; by default, those that stand for an output of another step.
    """
    if later is None:
        later = {name for name, job_input in spec.inputs.items() if is_later(job_input)}
    return spec.model_copy(
        update={
            "inputs": {name: job_input for name, job_input in spec.inputs.items() if name not in later},
            "input_data": tuple(name for name in spec.input_data if name not in later),
        }
    )


def later_path(name: str) -> str:
    """Return what the path of an input is, here, that is known only later."""
    return f"{_LATER}{name}"


def pointer_of(names: tuple[str, ...]) -> str:
    """Return where the fields of the job of a step are, given its name after those of the pipelines that it is in."""
    return "".join(f"/steps/{name}/job" for name in names)


def is_later(job_input: object) -> bool:
    """Return whether this is an input of a `LeafStep` that an earlier step makes."""
    return isinstance(job_input, Input) and job_input.path.startswith(_LATER)


def leaf_steps(pipeline: PipelineSpec) -> list[LeafStep]:
    """The steps that are jobs, also those of pipelines in this one, each after all that it needs in its pipeline.

    Raises:
        InvalidInput: with one problem for each wrong field of each step, or because there are too many steps.
    """
    problems: list[Problem] = []
    leaves = list(_leaves(pipeline, (), problems))
    if len(leaves) > MAX_STEPS_IN_ALL:
        message = f"it has {len(leaves):,} steps with those of the pipelines in it, more than {MAX_STEPS_IN_ALL:,}"
        problems.append(Problem(pointer="/steps", message=message, hint="make several pipelines of it"))
    if problems:
        raise InvalidInput(problems=tuple(problems))
    return leaves


def _leaves(pipeline: PipelineSpec, above: tuple[str, ...], problems: list[Problem]) -> Iterator[LeafStep]:
    if len(above) >= MAX_DEPTH:
        message = f"pipelines are nested more than {MAX_DEPTH} deep"
        problems.append(Problem(pointer=pointer_of(above), message=message))
        return
    if above and pipeline.resume_from:
        message, hint = "a pipeline in a pipeline takes nothing over by itself", "set it at the outermost pipeline"
        problems.append(Problem(pointer=f"{pointer_of(above)}/resume_from", message=message, hint=hint))
    for name in pipeline.order():
        step, names = pipeline.steps[name], (*above, name)
        paths = {each: later_path(each) for each in step.inputs_from}
        try:
            if step.type == "pipeline":
                yield from _leaves(with_places(pipeline, step, step.pipeline_spec(paths)), names, problems)
            else:
                yield LeafStep(names, step, with_places(pipeline, step, step.job_spec(paths)))
        except InvalidInput as error:
            problems += (replace(each, pointer=f"{pointer_of(names)}{each.pointer}") for each in error.problems)


def with_places(pipeline: PipelineSpec, step: Step, spec: Spec) -> Spec:
    """The spec of a step's job, whose outputs that are outputs of the pipeline are where those are to be."""
    places = {
        output_name: pipeline.outputs[name].path
        for output_name, name in step.outputs_to.items()
        if name in pipeline.outputs
    }
    outputs = {
        name: output.model_copy(update={"path": places[name]}) if places.get(name) and not output.path else output
        for name, output in spec.outputs.items()
    }
    return spec.model_copy(update={"outputs": outputs})


def last_steps(pipeline: PipelineSpec) -> list[str]:
    """The steps whose outputs no other step reads, and of which none is an output of the pipeline."""
    used = {
        each.step
        for step in pipeline.steps.values()
        for each in step.inputs_from.values()
        if isinstance(each, StepInput)
    }
    used |= {output.of.step for output in pipeline.outputs.values() if output.of is not None}
    return [name for name in pipeline.order() if name not in used]


def with_jobs(pipeline: PipelineSpec, change: Callable[[dict[str, Any]], dict[str, Any]]) -> PipelineSpec:
    """The pipeline with the job of each step that is no pipeline replaced by what `change` makes of its fields."""
    document = pipeline.model_dump(mode="json", exclude_unset=True)
    changed = with_steps(document, lambda _, step: {**step, "job": change(step["job"])})
    return PipelineSpec.parse(changed)


def with_steps(
    document: dict[str, Any], change: Callable[[tuple[str, ...], dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The fields of a pipeline with each step that is no pipeline replaced by what `change` makes of its names and its
    fields.
    """
    return _with_steps(document, (), change)


def _with_steps(
    document: dict[str, Any],
    above: tuple[str, ...],
    change: Callable[[tuple[str, ...], dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    steps = {}
    for name, step in document["steps"].items():
        names = (*above, name)
        if step["type"] == "pipeline":
            steps[name] = {**step, "job": _with_steps(step["job"], names, change)}
        else:
            steps[name] = change(names, step)
    return {**document, "steps": steps}
