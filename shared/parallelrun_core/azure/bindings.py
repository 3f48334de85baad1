"""Inputs, outputs and expressions between a pipeline and its step (reference §2.2, §2.3).

The inputs and outputs of a step are read in the context of its pipeline (`${{parent.inputs.x}}`); all else in the step
is read in its own (`${{inputs.x}}`). Names are compared without letter case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from parallelrun_core.azure.findings import DocumentLocation, Findings, quoted
from parallelrun_core.azure.named import named_input
from parallelrun_core.azure.part import DataAdditions
from parallelrun_core.azure.scope import LATER, STAND_IN, Fields, Later, PipelineScope
from parallelrun_core.azure.v2_models import LITERAL_TYPES, MODEL_TYPES, GivenInput
from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.problems import did_you_mean, was_meant
from parallelrun_core.spec.expressions import (
    is_expression,
    only_expression,
    reference,
    same_name,
    step_reference,
)
from parallelrun_core.spec.fields import NAME, checked_path, of_type

DEFAULT_DATASTORE: Final = re.compile(r"\$\{\{\s*default_datastore\s*\}\}", re.IGNORECASE)
ARTIFACTS: Final = "artifacts"
"""The output that each command of Azure ML has, though nobody declares it."""
_TABLE_ONLY: Final = ("eval_mount", "eval_download")


def parent_key(text: object, kind: str, parents: Mapping[str, Any], pointer: str, findings: Findings) -> str | None:
    """The key of the input or output that `${{parent.<kind>.NAME}}` refers to; None, with a problem, if none."""
    expression = only_expression(text) or str(text)
    target = reference(expression)
    if target is None or not target.of_parent or target.kind != kind:
        _explain(expression, kind, pointer, findings)
        return None
    key = same_name(target.name, parents)
    if key is None:
        message = f"{text!r}: the pipeline has no {kind[:-1]} {target.name!r}"
        findings.wrong(pointer, message, f"it has: {quoted(parents)}")
    return key


def _explain(expression: str, kind: str, pointer: str, findings: Findings) -> None:
    hint = f"${{{{parent.{kind}.NAME}}}} is one of the pipeline's"
    if "jobs." in expression:
        message = f"{expression!r} is the output of another step, and there is no other step"
        findings.wrong(pointer, message, "run that step first, and give the path of its output")
    elif expression.startswith("inputs."):
        findings.wrong(pointer, f"{expression!r} names the step's own input here", was_meant(f"parent.{expression}"))
    else:
        findings.wrong(pointer, f"{expression!r} cannot be resolved here", hint)


# Inputs


def pipeline_inputs(raw: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> dict[str, Fields | None]:
    """The inputs of a pipeline; None for one that is optional and not given."""
    names = unique_entries(raw, location, findings)
    return {name: _input(value, None, PipelineScope(findings), location.below(name)) for name, value in names.items()}


def step_inputs(
    raw: Mapping[str, Any], declared: Mapping[str, GivenInput] | None, scope: PipelineScope, location: DocumentLocation
) -> dict[str, Fields]:
    """The inputs of a step as the job spec has them; those that are optional and not given are left out.

    Args:
        declared: what its component declares; None when it has no component.
    """
    inputs = declared_entries(raw, declared, scope, location, "input")
    resolved = {}
    for name in inputs if declared is None else declared:
        key = same_name(name, inputs)
        value = inputs[key] if key else None
        fields = _input(value, (declared or {}).get(name), scope, location.below(key or name))
        if fields is not None:
            later = fields.pop(LATER, None)
            scope.later |= {name: later} if later else {}
            resolved[name] = fields
    return resolved


def declarations(raw: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> dict[str, GivenInput]:
    """The inputs that a component declares."""
    declared = {}
    for name, value in unique_entries(raw, location, findings).items():
        is_text = isinstance(value, str)
        hints = {"type": f"if it is a value: {name}: {{type: string, value: {value}}}"} if is_text else {}
        declaration = findings.validate(GivenInput, {"type": value} if is_text else value, location.at(name), hints)
        if declaration is not None:
            declared[name] = declaration
    return declared


def declared_entries(
    raw: Mapping[str, Any],
    declared: Mapping[str, Any] | None,
    scope: PipelineScope,
    location: DocumentLocation,
    kind: str,
) -> Mapping[str, Any]:
    entries = unique_entries(raw, location, scope.findings)
    for name in entries if declared is not None else ():
        if same_name(name, declared or {}) is None:
            if kind == "output":
                message = f"the component has no such {kind}"
                scope.findings.wrong(location.at(name), message, f"it has: {quoted(declared or {})}")
                continue
            message = f"the component has no such {kind}: Azure ML ignores it, and so does ParallelRun"
            hint = did_you_mean(name, declared or {}, f"it has: {quoted(declared or {})}")
            scope.findings.note(location.at(name), f"{message}; {hint}")
    return entries


def _input(value: Any, declared: GivenInput | None, scope: PipelineScope, location: DocumentLocation) -> Fields | None:
    entry = GivenInput()
    if isinstance(value, dict):
        checked = scope.findings.validate(GivenInput, value, location.pointer)
        if checked is None:
            return None
        entry, value = checked, checked.path
        if entry.is_literal and not is_expression(entry.path):
            value = entry.default if entry.value is None else entry.value
    kind = entry.type or (declared.type if declared else None)
    if value is None and declared is not None:
        value = declared.default if declared.path is None else declared.path
    if value is None:
        if not (entry.optional or (declared is not None and declared.optional)):
            field = "value" if kind in LITERAL_TYPES else "path"
            hint = f"as in --set {_dotted(location)}.{field}=…"
            scope.findings.wrong(location.pointer, f"a {field} is required", hint)
        return None
    base = _bound_or_local(value, kind, is_path=entry.path is not None, scope=scope, location=location)
    if base is None:
        return None
    if LATER in base and "value" in base:
        return _later_literal(base, kind, location, scope.findings)
    if "value" in base:
        return read_literal(base["value"], kind, declared or entry, location, scope.findings)
    return _overlay(base, entry, declared, location, scope.findings)


def _later_literal(base: Fields, kind: str | None, location: DocumentLocation, findings: Findings) -> Fields | None:
    """An input that gets a value which a step makes, in the type that it declares."""
    if kind is not None and kind not in LITERAL_TYPES:
        findings.wrong(location.pointer, f"it is bound to a {base['type']}, which can't be an input of type {kind}")
        return None
    return {"value": base["value"], LATER: base[LATER]._replace(literal=kind or base["type"])}


def _bound_or_local(
    value: Any, kind: str | None, *, is_path: bool, scope: PipelineScope, location: DocumentLocation
) -> Fields | None:
    """The input that a value is bound to, or a literal, or a path."""
    if is_expression(value):
        return _bound(value, is_path=is_path, scope=scope, location=location)
    if not isinstance(value, str) or kind in LITERAL_TYPES or (kind is None and not is_path):
        return {"value": value}
    try:
        value = scope.findings.place(value, location.at("path"))
    except NotFound as error:  # of an output of another job
        scope.findings.wrong(location.at("path"), str(error), "as in azureml://jobs/JOB/outputs/NAME, once it is made")
        return None
    named = named_input(value, kind, location, scope.findings)
    if named is not None:
        return named or None
    path = local_path(value, location, scope.findings)
    return {"path": path} if path is not None else None


def _bound(value: str, *, is_path: bool, scope: PipelineScope, location: DocumentLocation) -> Fields | None:
    """The input that an expression stands for: the pipeline's, or what a step makes."""
    where = location.at("path") if is_path else location.pointer
    if scope.steps is not None and only_expression(value) is None:
        hint = "bind the whole folder or file, and let the program find what it needs in it"
        scope.findings.wrong(where, f"{value!r}: an expression stands alone here", hint)
        return None
    if scope.steps is not None and step_reference(only_expression(value) or ""):
        later = step_output(value, scope.steps, where, scope.findings)
        return later_fields(later, scope.steps[later.step][later.name]) if later else None
    key = parent_key(value, "inputs", scope.inputs, where, scope.findings)
    bound = scope.inputs[key] if key else None
    if bound is not None:
        scope.origins[location.pointer] = f"{scope.inputs_at}/{key}"
        return {**bound, LATER: bound[LATER]._replace(step="", name=str(key))} if LATER in bound else bound
    return None


def later_fields(later: Later, kind: str) -> Fields:
    """An input of this type whose path, or whose value, is not known yet."""
    if kind in LITERAL_TYPES:
        return {"value": STAND_IN, "type": kind, LATER: later._replace(literal=kind)}
    return {"path": STAND_IN, "type": kind, LATER: later}


def _overlay(
    base: Fields, entry: GivenInput, declared: GivenInput | None, location: DocumentLocation, findings: Findings
) -> Fields | None:
    """The input with the type and mode of the step, else of its component, else of the pipeline."""
    kind = entry.type or (declared.type if declared else None) or base.get("type") or "uri_folder"
    mode = entry.mode or (declared.mode if declared else None) or base.get("mode") or "ro_mount"
    model: Fields = {"model": base["model"]} if base.get("model") else {}
    if kind in MODEL_TYPES:
        model, kind = {"model": kind}, "uri_folder"
    if mode in _TABLE_ONLY and kind != "mltable":
        findings.wrong(location.at("mode"), f"mode {mode!r} is for inputs of type mltable, not {kind}")
        return None
    if misfit := _misfit(base, kind):
        findings.wrong(location.pointer, misfit)
        return None
    fields = {name: base[name] for name in ("path", LATER) if name in base} | {"type": kind, "mode": mode} | model
    fields |= {"asset": base["asset"]} if base.get("asset") else {}
    additions = {key: getattr(entry, key) or base.get(key) for key in DataAdditions.model_fields}
    return fields | {key: value for key, value in additions.items() if value}


def _misfit(base: Fields, kind: str) -> str:
    """Why an input of this type can't be what it is bound to; empty if it can."""
    if kind in LITERAL_TYPES:
        return f"an input of type {kind} has a value, and this is a path"
    base_type = base.get("type", "uri_folder") if LATER in base else kind
    if (base_type == "uri_file") != (kind == "uri_file"):
        return f"it is bound to a {base_type}, which can't be an input of type {kind}"
    return ""


def step_output(
    value: object, steps: Mapping[str, Mapping[str, str]], pointer: str, findings: Findings
) -> Later | None:
    """The output of a step that `${{parent.jobs.STEP.outputs.NAME}}` refers to; None, with a problem, if none.

    Args:
        steps: the type of each output of each step.
    """
    target = step_reference(only_expression(value) or "")
    if target is None or not target.output:
        findings.wrong(pointer, f"{value!r} is not an output of a step", "as in ${{parent.jobs.STEP.outputs.NAME}}")
        return None
    step = same_name(target.step, steps)
    if step is None:
        findings.wrong(pointer, f"{value!r}: there is no step {target.step!r}", f"they are: {quoted(steps)}")
        return None
    name = same_name(target.output, steps[step])
    if name is None:
        message = f"{value!r}: the step {step!r} has no output {target.output!r}"
        findings.wrong(pointer, message, f"it has: {quoted(steps[step])}")
        return None
    return Later(step, name)


# Settings of the step


def setting(value: Any, step_inputs_by_name: Mapping[str, Fields], scope: PipelineScope, pointer: str) -> Any:
    """A setting with the value of the step's or the pipeline's input that it is bound to."""
    expression = only_expression(value)
    if expression is None:
        return value
    target = reference(expression)
    named: Mapping[str, Fields | None] = step_inputs_by_name if target and not target.of_parent else scope.inputs
    key = same_name(target.name, named) if target and target.kind == "inputs" else None
    bound = named[key] if key else None
    is_later = key in scope.later if named is step_inputs_by_name else LATER in (bound or ())
    if is_later:
        message = f"{value!r} is known only when the step begins, and this setting is needed before"
        scope.findings.wrong(pointer, message, "write the value itself, or bind it to an input that has one")
        return None
    if bound is None or "value" not in bound:
        has = quoted(key for key, fields in named.items() if fields and "value" in fields)
        scope.findings.wrong(pointer, f"{value!r} is not bound to a value", f"inputs with a value: {has}")
        return None
    return bound["value"]


def unique_entries(raw: Mapping[Any, Any], location: DocumentLocation, findings: Findings) -> dict[str, Any]:
    """The entries whose name can be bound, each name once."""
    entries: dict[str, Any] = {}
    for name, value in raw.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            findings.wrong(
                location.at(name), "a name must have only letters, digits and '_'; groups of inputs are not supported"
            )
        elif (first := same_name(name, entries)) is not None:
            findings.wrong(location.at(name), f"it is the same as {first!r}: names are compared without letter case")
        else:
            entries[name] = value
    return entries


def local_path(path: str, location: DocumentLocation, findings: Findings, *, is_written: bool = False) -> str | None:
    try:
        return location.absolute(checked_path(path, is_written=is_written))
    except ValueError as error:
        findings.wrong(location.at("path"), str(error), f"as in --set {_dotted(location)}.path=./data")
    except InvalidInput as error:
        findings.problems += error.problems
    return None


def _dotted(location: DocumentLocation) -> str:
    return location.pointer.strip("/").replace("/", ".")


def read_literal(
    value: Any, kind: str | None, declared: GivenInput | None, location: DocumentLocation, findings: Findings
) -> dict[str, Any] | None:
    """The input, as the job spec has it; None, with a problem, when it doesn't have its declared type."""
    if not isinstance(value, bool | int | float | str):
        findings.wrong(location.pointer, "must be a number, a string, a truth value or an input with a path")
        return None
    if kind is not None and kind not in LITERAL_TYPES:
        findings.wrong(location.pointer, f"{value!r} is a value; an input of type {kind} has a path")
        return None
    try:
        value = of_type(kind, value)
    except (ValueError, OverflowError):
        findings.wrong(location.pointer, f"{str(value)!r} is not of type {kind}")
        return None
    if declared is not None and isinstance(value, int | float):
        below = declared.min is not None and value < declared.min
        above = declared.max is not None and value > declared.max
        if below or above:
            findings.wrong(location.pointer, f"{value!r} is {_outside(declared)}")
    if declared is not None and declared.enum is not None and value not in _choices(kind, declared.enum):
        findings.wrong(location.pointer, f"{value!r} is not one of {quoted(map(str, declared.enum))}")
    return {"value": value}


def _choices(kind: str | None, declared: list[Any]) -> Iterator[bool | int | float | str]:
    for choice in declared:
        with suppress(ValueError, OverflowError, TypeError):
            yield of_type(kind, choice)


def _outside(declared: GivenInput) -> str:
    """Return what is wrong with a number outside of the declared range."""
    least, most = (int(end) if end is not None and end.is_integer() else end for end in (declared.min, declared.max))
    if most is None:
        return f"less than {least}"
    return f"greater than {most}" if least is None else f"not between {least} and {most}"
