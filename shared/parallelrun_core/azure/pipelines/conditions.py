"""Steps of type `if_else`: they run nothing, but say which steps run if a value is true, and which if it is false.

check:
  type: if_else
  condition: ${{parent.jobs.STEP.outputs.NAME}}   # or ${{parent.inputs.NAME}}, or true
  true_block: ${{parent.jobs.STEP}}               # or a list of them
  false_block: ${{parent.jobs.STEP}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from parallelrun_core.azure.bindings import parent_key, step_output
from parallelrun_core.azure.findings import Findings, quoted
from parallelrun_core.azure.part import DocumentPart, Label
from parallelrun_core.azure.pipelines.wiring import IF_ELSE, RawStep
from parallelrun_core.azure.scope import LATER, Fields
from parallelrun_core.spec.expressions import is_expression, only_expression, same_name, step_reference
from parallelrun_core.spec.later_inputs import StepOutput
from parallelrun_core.spec.pipeline import Condition

_FILES: Final = ("boolean", "uri_file", "string")
"""The types of outputs that are one file, in which a truth value can be."""


class IfElse(DocumentPart):
    """The fields of such a step."""

    type: Literal["if_else"]
    condition: Any
    true_block: Any = None
    false_block: Any = None
    display_name: Label = None
    description: Label = None
    properties: dict[str, Any] | None = None
    comment: Label = None


def conditions_of(
    steps: Mapping[str, RawStep],
    types: Mapping[str, Mapping[str, str]],
    inputs: Mapping[str, Fields | None],
    findings: Findings,
) -> dict[str, tuple[Condition, ...]]:
    """The conditions of each step that has some; it is skipped unless all of them hold.

    What is wrong with a step of type `if_else` becomes a problem among the findings, and no condition.

    Args:
        types: of the outputs of each step.
        inputs: those of the pipeline.
    """
    conditions: dict[str, tuple[Condition, ...]] = {}
    for step in steps.values():
        if step.kind != IF_ELSE:
            continue
        node = findings.validate(IfElse, {**step.fields, "type": IF_ELSE}, step.location.pointer)
        if node is None:
            continue
        source = _value(node.condition, types, inputs, step, findings)
        if node.true_block is None and node.false_block is None:
            findings.wrong(step.location.at("true_block"), "set true_block, false_block, or both")
        if_true = _steps_of(node.true_block, steps, step.location.at("true_block"), findings)
        if_false = _steps_of(node.false_block, steps, step.location.at("false_block"), findings)
        for name in sorted({*if_true} & {*if_false}):
            hint = "a step that runs either way is in neither block"
            findings.wrong(step.location.at("false_block"), f"{name!r} is in true_block, too: it would never run", hint)
        for name, is_true in [*((name, True) for name in if_true), *((name, False) for name in if_false)]:
            if source is not None:
                conditions[name] = (*conditions.get(name, ()), Condition(of=source, is_true=is_true))
    return conditions


def _value(
    condition: Any,
    types: Mapping[str, Mapping[str, str]],
    inputs: Mapping[str, Fields | None],
    step: RawStep,
    findings: Findings,
) -> StepOutput | bool | None:
    """The truth value, or the output of a step in which it will be; None, with a problem, if it is neither."""
    pointer = step.location.at("condition")
    if (truth := _truth(condition)) is not None:
        return truth
    if not is_expression(condition):
        hint = "as in ${{parent.jobs.STEP.outputs.NAME}}, or true"
        findings.wrong(pointer, f"{condition!r} is neither a truth value nor an expression", hint)
        return None
    if step_reference(only_expression(condition) or ""):
        return _output(condition, types, pointer, findings)
    key = parent_key(condition, "inputs", inputs, pointer, findings)
    fields = (inputs[key] if key is not None else None) or {}
    if LATER in fields:
        hint = "make the condition an output of a step of this pipeline"
        findings.wrong(pointer, f"the value of the input {key!r} is known only when this pipeline begins", hint)
        return None
    truth = _truth(fields.get("value"))
    if key is not None and truth is None:
        findings.wrong(pointer, f"the input {key!r} is no truth value", "type: boolean")
    return truth


def _truth(value: object) -> bool | None:
    """The truth value, which is a text if it has come through Azure ML's client; None: it is none."""
    return {"true": True, "false": False}.get(str(value).lower())


def _output(
    condition: str, types: Mapping[str, Mapping[str, str]], pointer: str, findings: Findings
) -> StepOutput | None:
    """The output of a step in which the truth value will be; None, with a problem, if it can have none."""
    output = step_output(condition, types, pointer, findings)
    if output is None:
        return None
    kind = types[output.step][output.name]
    if kind not in _FILES:
        message = f"{condition!r} is of type {kind}, in which no truth value can be"
        findings.wrong(pointer, message, "type: boolean, a file with true or false in it")
        return None
    return StepOutput(step=output.step, output=output.name)


def _steps_of(block: Any, steps: Mapping[str, RawStep], pointer: str, findings: Findings) -> list[str]:
    names = []
    blocks = block if isinstance(block, list) else [block]
    for entry in blocks if block is not None else []:
        target = step_reference(only_expression(entry) or f"jobs.{entry}")
        key = same_name(target.step, steps) if target is not None and not target.output else None
        if key is None:
            hint = f"as in ${{{{parent.jobs.NAME}}}}; the steps are: {quoted(steps)}"
            findings.wrong(pointer, f"{entry!r} is not a step", hint)
        elif steps[key].kind == IF_ELSE:
            findings.wrong(
                pointer,
                f"{key!r} is a condition itself",
                "put its steps into a pipeline: a step of its own, or a component",
            )
        else:
            names.append(key)
    return names
