"""Inputs, outputs and expressions between a pipeline and its step (reference §2.2, §2.3).

The inputs and outputs of a step are read in the context of its pipeline (`${{parent.inputs.x}}`); all else in the step
is read in its own (`${{inputs.x}}`). Names are compared without letter case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from parallelrun_core.azure.findings import Findings, Location, quoted
from parallelrun_core.azure.literals import read_literal
from parallelrun_core.azure.v2_models import LITERAL_TYPES, MODEL_TYPES, GivenInput, GivenOutput
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.arguments import same_name
from parallelrun_core.spec.fields import NAME, local_path

Fields = dict[str, Any]
"""One input or output as the job spec has it."""

_EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_OPTIONAL: Final = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_OWN_INPUT: Final = re.compile(r"\$\{\{\s*inputs\.(\w+)\s*\}\}", re.IGNORECASE)
_DATASTORE: Final = re.compile(r"azureml:.*?/paths/(?P<path>.*)", re.IGNORECASE)
_TABLE_ONLY: Final = ("eval_mount", "eval_download")


@dataclass
class Pipe:
    """What a step is read in: its pipeline's inputs and outputs, and the findings."""

    findings: Findings
    job_name: str = "job"
    inputs: Mapping[str, Fields | None] = field(default_factory=dict)
    """None stands for one that is optional and not given."""
    outputs: Mapping[str, Fields] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """From the pointer of an input of the step to that of the pipeline's input that it is bound to."""


def is_expression(value: object) -> bool:
    return isinstance(value, str) and _EXPRESSION.search(value) is not None


def whole_expression(value: object) -> str | None:
    """What is between the braces, when the text is one expression and nothing else."""
    found = _EXPRESSION.fullmatch(value.strip()) if isinstance(value, str) else None
    return found[1] if found else None


def parent_value(text: object, kind: str, parents: Mapping[str, Any], pointer: str, findings: Findings) -> Any:
    """What `${{parent.<kind>.NAME}}` stands for; None, with a problem, when it stands for nothing."""
    expression = whole_expression(text) or str(text)
    head, _, name = expression.partition(f"parent.{kind}.")
    if head or not name:
        _explain(expression, kind, pointer, findings)
        return None
    key = same_name(name, parents)
    if key is None:
        findings.wrong(pointer, f"{text!r}: the pipeline has no {kind[:-1]} {name!r}", f"it has: {quoted(parents)}")
        return None
    return parents[key]


def _explain(expression: str, kind: str, pointer: str, findings: Findings) -> None:
    hint = f"${{{{parent.{kind}.NAME}}}} is one of the pipeline's"
    if "jobs." in expression:
        message = f"{expression!r} is the output of another step, and there is no other step"
        findings.wrong(pointer, message, "run that step first, and give the path of what it made")
    elif expression.startswith("inputs."):
        findings.wrong(pointer, f"{expression!r} names the step's own input here", f"did you mean parent.{expression}?")
    else:
        findings.wrong(pointer, f"{expression!r} stands for nothing here", hint)


# Inputs


def pipeline_inputs(raw: Mapping[str, Any], location: Location, findings: Findings) -> dict[str, Fields | None]:
    """The inputs of a pipeline; None for one that is optional and not given."""
    names = _unique(raw, location, findings)
    return {name: _input(value, None, Pipe(findings), location.below(name)) for name, value in names.items()}


def step_inputs(
    raw: Mapping[str, Any], declared: Mapping[str, GivenInput] | None, pipe: Pipe, location: Location
) -> dict[str, Fields]:
    """The inputs of a step as the job spec has them; those that are optional and not given are left out.

    Args:
        declared: what its component declares; None when it has no component.
    """
    given = _declared(raw, declared, pipe, location, "input")
    found = {}
    for name in given if declared is None else declared:
        key = same_name(name, given)
        value = given[key] if key else None
        fields = _input(value, (declared or {}).get(name), pipe, location.below(key or name))
        if fields is not None:
            found[name] = fields
    return found


def declarations(raw: Mapping[str, Any], location: Location, findings: Findings) -> dict[str, GivenInput]:
    """The inputs that a component declares."""
    found = {}
    for name, value in _unique(raw, location, findings).items():
        document = {"type": value} if isinstance(value, str) else value
        given = findings.validate(GivenInput, document, location.at(name))
        if given is not None:
            found[name] = given
    return found


def _declared(
    raw: Mapping[str, Any], declared: Mapping[str, Any] | None, pipe: Pipe, location: Location, what: str
) -> Mapping[str, Any]:
    given = _unique(raw, location, pipe.findings)
    for name in given if declared is not None else ():
        if same_name(name, declared or {}) is None:
            message = f"the component has no such {what}"
            pipe.findings.wrong(location.at(name), message, f"it has: {quoted(declared or {})}")
    return given


def _input(value: Any, declared: GivenInput | None, pipe: Pipe, location: Location) -> Fields | None:
    given = GivenInput()
    if isinstance(value, dict):
        checked = pipe.findings.validate(GivenInput, value, location.pointer)
        if checked is None:
            return None
        given, value = checked, checked.path
        if given.is_literal:
            value = given.default if given.value is None else given.value
    kind = given.type or (declared.type if declared else None)
    if value is None and declared is not None:
        value = declared.default if declared.path is None else declared.path
    if value is None:
        if not (given.optional or (declared is not None and declared.optional)):
            what = "value" if kind in LITERAL_TYPES else "path"
            pipe.findings.wrong(location.pointer, f"a {what} is required", f"as in --set {_dotted(location)}.{what}=…")
        return None
    base = _bound_or_local(value, kind, is_path=given.path is not None, pipe=pipe, location=location)
    if base is None:
        return None
    if "value" in base:
        return read_literal(base["value"], kind, declared, location, pipe.findings)
    return _overlay(base, given, declared, location, pipe.findings)


def _bound_or_local(value: Any, kind: str | None, *, is_path: bool, pipe: Pipe, location: Location) -> Fields | None:
    """What a value stands for: another input, a literal, or a path."""
    if is_expression(value):
        where = location.at("path") if is_path else location.pointer
        bound: Fields | None = parent_value(value, "inputs", pipe.inputs, where, pipe.findings)
        if bound is not None:
            name = str(whole_expression(value)).removeprefix("parent.inputs.")
            pipe.origins[location.pointer] = f"/inputs/{same_name(name, pipe.inputs)}"
        return bound
    if not isinstance(value, str) or kind in LITERAL_TYPES or (kind is None and not is_path):
        return {"value": value}
    path = _local(value, location, pipe.findings)
    return {"path": path} if path is not None else None


def _overlay(
    base: Fields, given: GivenInput, declared: GivenInput | None, location: Location, findings: Findings
) -> Fields | None:
    """The input with the type and mode of the step, else of its component, else of the pipeline."""
    kind = given.type or (declared.type if declared else None) or base.get("type") or "uri_folder"
    mode = given.mode or (declared.mode if declared else None) or base.get("mode") or "ro_mount"
    if kind in MODEL_TYPES:
        kind = "uri_folder"
    if mode in _TABLE_ONLY and kind != "mltable":
        findings.wrong(location.at("mode"), f"mode {mode!r} is for inputs of type mltable, not {kind}")
        return None
    fields = {"path": base["path"], "type": kind, "mode": mode}
    steps = given.transformations or base.get("transformations")
    return fields | {"transformations": steps} if steps else fields


# Outputs


def pipeline_outputs(raw: Mapping[str, Any], pipe: Pipe, location: Location) -> dict[str, Fields]:
    """The outputs of a pipeline."""
    names = _unique(raw, location, pipe.findings)
    return {name: _output(name, value, None, pipe, location.below(name)) for name, value in names.items()}


def step_outputs(
    raw: Mapping[str, Any], declared: Mapping[str, Any] | None, pipe: Pipe, location: Location
) -> dict[str, Fields]:
    """The outputs of a step as the job spec has them."""
    given = _declared(raw, declared, pipe, location, "output")
    found = {}
    for name in given if declared is None else declared:
        key = same_name(name, given)
        value = given[key] if key else None
        found[name] = _output(name, value, (declared or {}).get(name), pipe, location.below(key or name))
    return found


def _output(name: str, value: Any, declared: Any, pipe: Pipe, location: Location) -> Fields:
    document = {"path": value} if is_expression(value) else {} if value is None else value
    given = pipe.findings.validate(GivenOutput, document, location.pointer)
    below = pipe.findings.validate(GivenOutput, declared or {}, location.pointer)
    if given is None or below is None:
        return {}
    for label in ("name", "version"):
        if (getattr(given, label), getattr(below, label)) != (None, None):
            pipe.findings.note(location.at(label), "outputs are not registered anywhere")
    path = given.path or below.path
    base: Fields = {}
    if path and "parent." in path:
        base = parent_value(path, "outputs", pipe.outputs, location.pointer, pipe.findings) or {}
        path = None
    kind = given.type or below.type or base.get("type") or "uri_folder"
    fields: Fields = {**base, "type": "uri_file" if kind == "uri_file" else "uri_folder"}
    if path:
        path = path.replace("${{output_name}}", name).replace("${{name}}", pipe.job_name)
        fields |= _output_path(path, fields["type"], location, pipe.findings)
    return fields


def _output_path(path: str, kind: str, location: Location, findings: Findings) -> Fields:
    datastore = _DATASTORE.match(path)
    if datastore:
        # The datastore is in the cloud. Its file's name is what scripts and people look for.
        findings.note(
            location.at("path"), "Azure ML's datastores can't be written here: it goes to the job's own outputs"
        )
        last = datastore["path"].rstrip("/").rpartition("/")[2]
        return {"file_name": last} if kind == "uri_file" and last and not is_expression(last) else {}
    if is_expression(path):
        findings.wrong(
            location.at("path"), f"{path!r} stands for nothing here", "give a folder or file, or leave it out"
        )
        return {}
    local = _local(path, location, findings)
    return {"path": local} if local else {}


# What the step says in its own context


def without_absent_options(text: str, given: Mapping[str, Any]) -> str:
    """Program arguments without each `$[[…]]` part that has an input which is not given."""

    def part(found: re.Match[str]) -> str:
        names = [name[1] for name in _OWN_INPUT.finditer(found[1])]
        return found[1] if all(same_name(name, given) is not None for name in names) else ""

    return _OPTIONAL.sub(part, text)


def filled(value: Any, own: Mapping[str, Fields], pipe: Pipe, pointer: str) -> Any:
    """A setting with the value of the pipeline's or the step's input that it is bound to."""
    expression = whole_expression(value)
    if expression is None:
        return value
    named: Mapping[str, Fields | None]
    named, name = (own, expression[7:]) if expression.startswith("inputs.") else (pipe.inputs, expression[14:])
    key = same_name(name, named) if expression.startswith(("inputs.", "parent.inputs.")) else None
    bound = named[key] if key else None
    if bound is None or "value" not in bound:
        has = quoted(key for key, fields in named.items() if fields and "value" in fields)
        pipe.findings.wrong(pointer, f"{value!r} is not bound to a value", f"inputs with a value: {has}")
        return None
    return bound["value"]


def _unique(raw: Mapping[Any, Any], location: Location, findings: Findings) -> dict[str, Any]:
    """What has a name that can be bound."""
    found: dict[str, Any] = {}
    for name, value in raw.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            findings.wrong(
                location.at(name), "a name has letters, digits and '_' only; groups of inputs are not supported"
            )
        elif (first := same_name(name, found)) is not None:
            findings.wrong(location.at(name), f"it is {first!r} again: names are compared without letter case")
        else:
            found[name] = value
    return found


def _local(path: str, location: Location, findings: Findings) -> str | None:
    try:
        return location.absolute(local_path(path))
    except ValueError as error:
        findings.wrong(location.at("path"), str(error), f"a local path, as in --set {_dotted(location)}.path=./data")
    except InvalidInput as error:
        findings.problems += error.problems
    return None


def _dotted(location: Location) -> str:
    return location.pointer.strip("/").replace("/", ".")
