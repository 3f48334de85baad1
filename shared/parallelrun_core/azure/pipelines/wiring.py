"""The steps of a pipeline: their kinds, their components, and the types of their outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from parallelrun_core.azure.bindings import ARTIFACTS
from parallelrun_core.azure.components import open_component
from parallelrun_core.azure.findings import DocumentLocation, Findings, quoted
from parallelrun_core.azure.forms import CONFIG
from parallelrun_core.azure.scope import DocumentTooLarge, PipelineScope
from parallelrun_core.azure.v2_models import MODEL_TYPES
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.patterns import PLAIN_NAME
from parallelrun_core.spec.expressions import only_expression, reference, same_name

V1: Final = "v1"
OWN: Final = "own"
"""A job spec of ours."""
IF_ELSE: Final = "if_else"
PARALLEL_FOR: Final = "parallel_for"
DO_WHILE: Final = "do_while"
LOOPS: Final = (PARALLEL_FOR, DO_WHILE)
RUN_NOTHING: Final = (IF_ELSE, *LOOPS)
"""Kinds of steps that say how others run."""
_KINDS: Final = ("parallel", "command", "pipeline", *RUN_NOTHING)
_ARTIFACTS_OF: Final = re.compile(r"parent\.jobs\.([A-Za-z0-9_-]+)\.outputs\.artifacts\b", re.IGNORECASE)
_NAME: Final = re.compile(PLAIN_NAME)


@dataclass(frozen=True, slots=True)
class RawStep:
    """A step as it was written, with its component in place of the reference to it."""

    name: str
    kind: str
    """`parallel`, `command`, `pipeline`, `if_else`, `parallel_for`, `do_while`, `own` or `v1`."""
    fields: Mapping[str, Any]
    location: DocumentLocation
    component_at: DocumentLocation | None = None
    """The place from which its component is read."""

    @property
    def component(self) -> Mapping[str, Any]:
        """Its component; empty if it has none."""
        return self.fields.get("component") or {}

    @property
    def is_deterministic(self) -> bool:
        """Return whether equal inputs make equal outputs."""
        declared = self.fields.get("allow_reuse" if self.kind == V1 else "is_deterministic")
        return (self.component.get("is_deterministic") if declared is None else declared) is not False


def kind_of(fields: Mapping[str, Any]) -> str:
    """The kind of a step, as far as it says so itself; empty if only its component can say."""
    if isinstance(fields.get("type"), str):
        return str(fields["type"]).lower()
    if CONFIG in fields:
        return V1
    if "component" not in fields and ("entry_script" in fields or "command" in fields):
        return OWN if "entry_script" in fields or "environment" not in fields else "command"  # which Azure ML requires
    return ""


def raw_steps(jobs: Mapping[Any, Any], location: DocumentLocation, scope: PipelineScope) -> dict[str, RawStep]:
    """The steps below `jobs`, without those that are left out. Those that can't be read are problems.

    Raises:
        DocumentTooLarge: with their components, they are.
    """
    findings = scope.findings
    steps: dict[str, RawStep] = {}
    present = {name: step for name, step in jobs.items() if step is not None}
    for name, fields in present.items():
        where = location.below(name)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            findings.wrong(where.pointer, "the name of a step has letters, digits, '_' and '-', 128 at most")
        elif (first := same_name(name, steps)) is not None:
            findings.wrong(where.pointer, f"it is the same as {first!r}: names are compared without letter case")
        else:
            try:
                steps[name] = _raw_step(name, fields, where, list(present), findings)
                if steps[name].component_at is not None:
                    scope.budget.take_text(steps[name].component, where.at("component"))
            except DocumentTooLarge:
                raise
            except InvalidInput as error:
                findings.problems += error.problems
    if not present:
        findings.wrong(location.pointer, "there is no step", "a pipeline needs one")
    return steps


def _raw_step(name: str, fields: Any, location: DocumentLocation, names: list[str], findings: Findings) -> RawStep:
    if not isinstance(fields, dict):
        raise InvalidInput.at(location.pointer, "must be a mapping")
    if not kind_of(fields) and "component" not in fields:
        others = quoted(repr(other) for other in names if other != name)
        message = "this step has neither type nor component"
        raise InvalidInput.at(location.pointer, message, f"the step is called {others}" if len(names) == 2 else "")
    component_location: DocumentLocation | None = None
    of_component = "parallel"
    if fields.get("component") is not None:
        problems = Findings(names=findings.names)
        component, component_location = open_component(fields["component"], location.below("component"), problems)
        findings.notes += problems.notes
        of_component = str(component.get("type") or kind_of(fields) or "parallel").lower()
        if kind_of(fields) not in ("", of_component):
            message = f"the step is of type {kind_of(fields)!r}, and its component of type {of_component!r}"
            raise InvalidInput.at(location.at("type"), message, f"type: {of_component}, or leave it out")
        fields = {**fields, "component": component}
    kind = kind_of(fields) or of_component
    if kind not in (*_KINDS, V1, OWN):
        hint = "leave it out, as in --set jobs.NAME=null, and give the others the paths of its outputs"
        message = f"a step of type {kind!r} can't be run; those of type parallel, command and pipeline can"
        raise InvalidInput.at(location.at("type"), message, hint)
    return RawStep(name, kind, fields, location, component_location)


def with_artifacts(steps: Mapping[str, RawStep]) -> dict[str, RawStep]:
    """The steps, with an output for their artifacts where others read it: nobody has to declare it."""
    text = repr([step.fields.get("inputs") for step in steps.values()])
    read = {match[1].lower() for match in _ARTIFACTS_OF.finditer(text)}
    return {
        name: replace(step, fields={**step.fields, "outputs": {ARTIFACTS: None, **_outputs_of(step)}})
        if step.kind == "command" and name.lower() in read and same_name(ARTIFACTS, _outputs_of(step)) is None
        else step
        for name, step in steps.items()
    }


def _outputs_of(step: RawStep) -> Mapping[str, Any]:
    outputs = step.fields.get("outputs")
    return outputs if isinstance(outputs, dict) else {}


def output_types(step: RawStep, parents: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The type of each output of a step.

    Args:
        parents: the outputs of the pipeline.
    """
    declared, outputs = (document.get("outputs") for document in (step.component, step.fields))
    declared = declared if isinstance(declared, dict) else {}
    outputs = outputs if isinstance(outputs, dict) else {}
    names = list(declared) if step.component else list(outputs)
    if step.component and step.kind == "command" and (key := same_name(ARTIFACTS, outputs)) is not None:
        names.append(key)
    types = {}
    for name in names:
        key = same_name(str(name), outputs)
        declared_types = [
            _type(declared.get(name), parents),
            _type(outputs.get(key), parents) if key is not None else "",
        ]
        kind = next(filter(None, declared_types), "uri_folder")
        types[str(name)] = "uri_folder" if kind in MODEL_TYPES else kind
    return types


def _type(output: Any, parents: Mapping[str, Mapping[str, Any]]) -> str:
    path = output
    if isinstance(output, dict):
        if isinstance(output.get("type"), str):
            return str(output["type"])
        path = output.get("path")
    bound = reference(only_expression(path) or "")
    key = same_name(bound.name, parents) if bound and bound.of_parent and bound.kind == "outputs" else None
    return str(parents[key].get("type", "")) if key is not None else ""
