"""Loops as Azure documents have them: parallel_for and do_while, with the steps that are their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictInt

from parallelrun_core.azure import bindings
from parallelrun_core.azure.findings import Findings, as_mapping, quoted
from parallelrun_core.azure.part import DocumentPart, Label
from parallelrun_core.azure.pipelines.wiring import LOOPS, PARALLEL_FOR, RUN_NOTHING, RawStep
from parallelrun_core.azure.scope import Fields
from parallelrun_core.azure.v2_models import LITERAL_TYPES, GivenInput
from parallelrun_core.spec.expressions import only_expression, same_name, step_reference
from parallelrun_core.spec.later_inputs import PipelineInput, StepInput
from parallelrun_core.spec.pipeline import MAX_TURNS, Step

ITEMS: Final = "__items"
FILES: Final = ("string", "uri_file")
CONDITIONS: Final = ("boolean", "uri_file", "string")


class _LoopNode(DocumentPart):
    type: str
    body: Any
    display_name: Label = None
    description: Label = None
    properties: dict[str, Any] | None = None
    comment: Label = None
    after: Any = None


class ParallelFor(_LoopNode):
    """The fields of a `parallel_for`."""

    items: Any
    max_concurrency: Annotated[StrictInt, Field(ge=1)] | None = None
    outputs: dict[str, Any] | None = None


class LoopLimits(DocumentPart):
    """The limits of a `do_while`."""

    max_iteration_count: Annotated[StrictInt, Field(ge=1, le=MAX_TURNS)] = MAX_TURNS
    type: Literal["do_while"] | None = None


class DoWhile(_LoopNode):
    """The fields of a `do_while`."""

    condition: str | None = None
    mapping: dict[str, Any] = Field(default_factory=dict)
    limits: LoopLimits = Field(default_factory=LoopLimits)


@dataclass(frozen=True, slots=True)
class RawLoop:
    """A loop as it was written, with its body."""

    step: RawStep
    body: RawStep
    node: ParallelFor | DoWhile

    @property
    def names_body(self) -> bool:
        """Return whether others name the body where they mean the outputs of the last turn."""
        return isinstance(self.node, DoWhile)

    def at(self, *names: str) -> str:
        """Return where a field of the loop is in the document."""
        return self.step.location.at(*names)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that the body was given."""
        inputs = self.body.fields.get("inputs")
        return inputs if isinstance(inputs, dict) else {}

    def declared(self) -> dict[str, GivenInput]:
        """The inputs that the body declares: by its component, or with a type in the place of a value."""
        ignored = Findings()  # what is wrong there is told when the body is read
        if self.body.component_at is not None:
            raw = as_mapping(self.body.component.get("inputs"), "", ignored)
        else:
            raw = {
                name: entry
                for name, entry in self.inputs.items()
                if isinstance(entry, dict) and "type" in entry and not {"path", "value"} & entry.keys()
            }
        return bindings.declarations(raw, self.body.location.below("inputs"), ignored)


def without_bodies(steps: Mapping[str, RawStep], findings: Findings) -> tuple[dict[str, RawStep], dict[str, RawLoop]]:
    """The steps without the bodies of loops, and the loops by their names."""
    loops: dict[str, RawLoop] = {}
    for step in steps.values():
        if step.kind not in LOOPS:
            continue
        model: type[ParallelFor | DoWhile] = ParallelFor if step.kind == PARALLEL_FOR else DoWhile
        node = findings.validate(model, {**step.fields, "type": step.kind}, step.location.pointer)
        body = _body(node.body, steps, step, findings) if node is not None else None
        if node is None or body is None:
            continue
        other = next((name for name, loop in loops.items() if loop.body is body), None)
        if other is not None:
            message = f"{body.name!r} is the body of {other!r} already"
            findings.wrong(step.location.at("body"), message, "write the step once for each loop")
            continue
        loops[step.name] = RawLoop(step, body, node)
    bodies = {loop.body.name for loop in loops.values()}
    return {name: step for name, step in steps.items() if name not in bodies}, loops


def _body(named: Any, steps: Mapping[str, RawStep], step: RawStep, findings: Findings) -> RawStep | None:
    target = step_reference(only_expression(named) or f"jobs.{named}")
    key = same_name(target.step, steps) if target is not None and not target.output else None
    if key is None or key == step.name:
        hint = f"as in ${{{{parent.jobs.NAME}}}}; the steps are: {quoted(name for name in steps if name != step.name)}"
        findings.wrong(step.location.at("body"), f"{named!r} is not another step", hint)
        return None
    if steps[key].kind in RUN_NOTHING:
        message = f"{key!r} is of type {steps[key].kind}, and can't be a body itself"
        findings.wrong(step.location.at("body"), message, "put it into a step of type pipeline, and name that")
        return None
    return steps[key]


def types_of_loop(loop: RawLoop, types: Mapping[str, str]) -> dict[str, str]:
    """The type of each output of a loop.

    Args:
        types: those of its body.
    """
    if isinstance(loop.node, DoWhile):
        return dict(types)
    return {name: "string" if kind in LITERAL_TYPES else "mltable" for name, kind in types.items()}


def with_names_of_loops(steps: Mapping[str, Step], loops: Mapping[str, RawLoop]) -> dict[str, Step]:
    """The steps, with the names of loops where those of their bodies were written."""
    names = {loop.body.name: name for name, loop in loops.items() if loop.names_body}
    if not names:
        return dict(steps)

    def renamed(part: Any) -> Any:
        is_bound = getattr(part, "step", None) in names
        return part.model_copy(update={"step": names[part.step]}) if is_bound else part

    changed = {}
    for name, step in steps.items():
        update = {
            "inputs_from": {key: renamed(source) for key, source in step.inputs_from.items()},
            "after": tuple(names.get(each, each) for each in step.after),
            "conditions": tuple(each.model_copy(update={"of": renamed(each.of)}) for each in step.conditions),
        }
        changed[name] = step.model_copy(update=update)
    return changed


@dataclass
class Turns:
    """Inputs of a body that change by turns, and the fields of the loop that say how."""

    open: dict[str, str]
    """Names of the body's inputs that change, each with its type."""
    loop: dict[str, Any]
    inputs: dict[str, Fields]
    """Inputs of the loop's pipeline."""
    sources: dict[str, StepInput | PipelineInput]
    """Inputs of the loop's pipeline that other steps make."""
