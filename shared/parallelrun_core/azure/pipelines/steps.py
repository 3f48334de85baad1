"""A step of a pipeline that is no pipeline itself: a parallel job, a command, a job of our own form or of v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from parallelrun_core.azure import bindings, output_bindings
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.own_form import read_own
from parallelrun_core.azure.pipelines.wiring import OWN, V1, RawStep
from parallelrun_core.azure.scope import PipelineScope
from parallelrun_core.azure.v1 import named_inputs, read_v1
from parallelrun_core.azure.v2_command import CommandReader
from parallelrun_core.azure.v2_reader import V2Reader
from parallelrun_core.azure.v2_step import StepReader
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.expressions import is_expression
from parallelrun_core.spec.fields import Input

AFTER: Final = "after"
"""A field of ours: names of steps that must have completed, though no data of theirs is needed."""
READERS: Final[Mapping[str, type[V2Reader]]] = {reader.kind: reader for reader in (StepReader, CommandReader)}
"""Who reads a v2 document that is a job, by its type."""
OF_THE_STEP: Final = (AFTER, "is_deterministic")
"""Fields of a step that aren't those of its job."""


@dataclass(frozen=True, slots=True)
class ReadJob:
    draft: Draft
    spec: JobSpec
    """The spec, with a stand-in for each path that isn't known yet."""
    scope: PipelineScope
    """The scope that says which those are, and which outputs are the pipeline's."""

    def fields(self) -> dict[str, Any]:
        """The fields of the job spec, without the inputs that other steps make."""
        fields = self.spec.model_dump(mode="json", exclude_unset=True)
        inputs = fields.get("inputs", {})
        return {**fields, "inputs": {name: entry for name, entry in inputs.items() if name not in self.scope.later}}

    def inputs(self) -> dict[str, Input]:
        """The inputs that other steps make, with stand-ins for their paths."""
        return {name: path for name, path in self.spec.input_paths() if name in self.scope.later}


def read_step(step: RawStep, scope: PipelineScope, findings: Findings) -> ReadJob:
    """The job of a step.

    Args:
        scope: of this step alone.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    fields = {name: value for name, value in step.fields.items() if name != AFTER}
    if step.kind in (OWN, V1):
        draft = _read_other_form(step, fields, scope, findings)
    else:
        draft = _read_v2(step, fields, scope, findings)
    spec = draft.finish(findings)
    if step.location.folder is not None:
        spec = spec.relative_to(step.location.folder)
    return ReadJob(draft, spec, scope)


def _read_v2(step: RawStep, fields: Mapping[str, Any], scope: PipelineScope, findings: Findings) -> Draft:
    reader = READERS[step.kind](findings, default=step.location.pointer, is_step=True)
    name = fields.get("display_name") or step.component.get("display_name") or step.name
    reader.put_labels(name, fields.get("description"), fields.get("tags"), step.location)
    reader.scope = scope
    reader.read(fields, step.location, step.component_at)
    return reader.draft


# Steps of our own form, and of v1: their bindings are the same as those of v2


def _read_other_form(step: RawStep, fields: Mapping[str, Any], scope: PipelineScope, findings: Findings) -> Draft:
    document = {"name": step.name, **{name: value for name, value in fields.items() if name not in OF_THE_STEP}}
    for group in ("inputs", "side_inputs") if step.kind == V1 else ("inputs",):
        if group in document:
            where = step.location.below(group)
            entries = named_inputs(document[group], group[:-1]) if step.kind == V1 else _by_name(document[group])
            if isinstance(entries, dict) and any(map(_is_bound, entries.values())):
                document[group] = _bound_inputs(entries, scope, where)
    if isinstance(document.get("outputs"), dict):
        document["outputs"] = _bound_outputs(document["outputs"], scope, step.location.below("outputs"))
    if step.kind == V1:
        draft = read_v1(document, step.location, findings, is_step=True)
    else:
        draft = read_own(document, step.location, findings)
        draft.is_step = True
    if scope.default_compute and not draft.fields.get("compute"):
        draft.put("compute", scope.default_compute, step.location.at("compute"))
    return draft


def _without(field: str, entry: Any) -> Any:
    return {key: value for key, value in entry.items() if key != field} if isinstance(entry, dict) else entry


def _by_name(inputs: Any) -> Any:
    return {"data": inputs} if isinstance(inputs, str) else inputs


def _bound_inputs(inputs: Mapping[str, Any], scope: PipelineScope, location: DocumentLocation) -> dict[str, Any]:
    bound = {name: _without("name", value) for name, value in inputs.items() if _is_bound(value)}
    return {**inputs, **bindings.step_inputs(bound, None, scope, location)}


def _bound_outputs(outputs: Mapping[str, Any], scope: PipelineScope, location: DocumentLocation) -> dict[str, Any]:
    bound = {name: _without("asset", value) for name, value in outputs.items() if _is_bound(value)}
    fields = output_bindings.step_outputs(bound, None, scope, location)
    for name in fields:  # these forms name the asset as a job spec does
        if isinstance(outputs[name], dict) and "asset" in outputs[name]:
            fields[name] = {**fields[name], "asset": outputs[name]["asset"]}
    return {**outputs, **fields}


def _is_bound(value: Any) -> bool:
    return is_expression(value.get("path") if isinstance(value, dict) else value)


def names_after(step: RawStep, findings: Findings) -> list[str]:
    """The names in `after`, which is ours."""
    after = step.fields.get(AFTER)
    names = [after] if isinstance(after, str) else after or []
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    findings.wrong(step.location.at(AFTER), "must be the name of a step, or a list of names")
    return []
