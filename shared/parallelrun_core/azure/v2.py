"""A v2 document becomes a job or a pipeline (reference §2.1).

A pipeline of one parallel step is a job, and so is a command job, or a component by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from parallelrun_core.azure import bindings, output_bindings
from parallelrun_core.azure.components import open_component
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping
from parallelrun_core.azure.forms import is_job_by_itself
from parallelrun_core.azure.pipelines.draft import PipelineDraft
from parallelrun_core.azure.pipelines.header import read_header
from parallelrun_core.azure.pipelines.reader import read_pipeline, step_at_an_end
from parallelrun_core.azure.pipelines.steps import READERS
from parallelrun_core.azure.pipelines.wiring import kind_of
from parallelrun_core.azure.v2_command import CommandReader
from parallelrun_core.azure.v2_models import TYPES
from parallelrun_core.azure.v2_reader import V2Reader
from parallelrun_core.azure.v2_step import StepReader
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.expressions import same_name, with_renamed_outputs


def read_v2(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> Draft | PipelineDraft:
    kind = str(document.get("type", "pipeline" if "jobs" in document else "")).lower()
    if kind == "pipeline":
        read = _read_one_step if _is_one_parallel_step(document, location) else read_pipeline
        return read(document, location, findings)
    if kind in READERS:
        return _read_by_itself(READERS[kind], document, location, findings)
    hint = "type: pipeline, parallel or command"
    findings.wrong("/type", f"a job of type {document.get('type')!r} can't be run", hint)
    findings.check()
    raise AssertionError


# Pipelines and components


def _is_one_parallel_step(document: Mapping[str, Any], location: DocumentLocation) -> bool:
    """Return whether this pipeline is a job by itself. One whose steps can't be read is none."""
    jobs = document.get("jobs")
    steps = [step for step in jobs.values() if step is not None] if isinstance(jobs, dict) else []
    if document.get("component") is not None or len(steps) != 1 or not isinstance(steps[0], dict):
        return False
    kind = kind_of(steps[0])
    if not kind and steps[0].get("component") is not None:
        with suppress(InvalidInput):
            component, _ = open_component(steps[0]["component"], location, Findings())
            return str(component.get("type", "parallel")).lower() == "parallel"
    return kind == "parallel"


def _read_one_step(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> Draft:
    fields, settings = header = read_header(document, location, findings)
    jobs = as_mapping(document.get("jobs"), location.at("jobs"), findings)
    name, step = next((str(name), step) for name, step in jobs.items() if step is not None)
    if not (step.get("compute") or settings.default_compute or fields.compute):
        hint = "settings: {default_compute: azureml:local}; any name will do as long as the server has no computes"
        findings.wrong(location.at("settings", "default_compute"), "no compute is named", hint)
    for field in ("on_init", "on_finalize"):
        if (called := getattr(settings, field)) is not None:
            step_at_an_end(called, {name: step}, location.at("settings", field), findings)
    reader = StepReader(findings, default=location.at("jobs", name))
    of_step = step.get("tags") if isinstance(step.get("tags"), dict) else {}
    description = fields.description or step.get("description")
    reader.put_labels(
        fields.display_name or fields.name or name, description, {**of_step, **(fields.tags or {})}, location
    )
    scope = reader.scope
    inputs = as_mapping(document.get("inputs"), location.at("inputs"), findings)
    scope.inputs = bindings.pipeline_inputs(inputs, location.below("inputs"), findings)
    scope.default_datastore = header.default_datastore
    scope.default_compute = header.default_compute
    outputs = as_mapping(document.get("outputs"), location.at("outputs"), findings)
    scope.outputs = output_bindings.pipeline_outputs(outputs, scope, location.below("outputs"))
    reader.read(step, location.below("jobs", name))
    _name_outputs(reader, location, location.below("jobs", name, "outputs"))
    return reader.draft


def _name_outputs(reader: StepReader, location: DocumentLocation, where: DocumentLocation) -> None:
    """Call the outputs of the only step what its pipeline calls them, as far as no other output of it is called so.

    Args:
        where: the step's outputs.
    """
    draft, names = reader.draft, dict[str, str]()
    outputs = draft.fields.get("outputs", {})
    origins: dict[str, str] = {}
    for name, key in reader.scope.outputs_to.items():
        if (first := origins.setdefault(key, name)) != name:
            message = f"the pipeline's output {key!r} is the output {first!r} of the step already"
            reader.findings.wrong(where.at(name), message, "an output has one origin")
        elif same_name(key, outputs) in (None, name):
            names[name] = key
    for key in reader.scope.outputs:
        if key not in origins:
            reader.findings.note(location.at("outputs", key), "no step writes this output")
    draft.fields["outputs"] = {names.get(name, name): fields for name, fields in outputs.items()}
    draft.origins |= {f"outputs/{key}": location.at("outputs", key) for key in names.values()}
    if (rows_to := same_name(draft.fields.get("append_row_to", ""), outputs)) is not None:
        draft.fields["append_row_to"] = names.get(rows_to, rows_to)
    if arguments := draft.fields.get("program_arguments"):
        draft.fields["program_arguments"] = with_renamed_outputs(arguments, names)


def _read_by_itself(
    kind: type[V2Reader], document: Mapping[str, Any], location: DocumentLocation, findings: Findings
) -> Draft:
    """A job or component by itself: its declared inputs have their own paths and values."""
    reader = kind(findings, default=location.pointer)
    label = document.get("display_name") or document.get("name")
    reader.put_labels(label, document.get("description"), document.get("tags"), location)
    if "component" in document:
        reader.read(document, location)
        return reader.draft
    declared = as_mapping(document.get("inputs"), location.at("inputs"), findings)
    is_job = is_job_by_itself(document)
    plain = {name: value for name, value in declared.items() if _is_plain(value, reader.kind, is_job=is_job)}
    values = {name: value for name, value in declared.items() if isinstance(value, dict) and _is_given(value)}
    component = {**document, "inputs": declared | {name: {} for name in plain}}
    reader.read({"component": component, "inputs": plain | values}, location, component_location=location)
    return reader.draft


def _is_plain(declared: object, kind: str, *, is_job: bool) -> bool:
    """Return whether it is a value by itself. Of a component, a string is the type of an input; of a job, a value."""
    is_word = isinstance(declared, str) and (is_job or (kind == CommandReader.kind and declared not in TYPES))
    return is_word or isinstance(declared, bool | int | float)


def _is_given(declared: Mapping[str, Any]) -> bool:
    return any(declared.get(name) is not None for name in ("path", "value"))
