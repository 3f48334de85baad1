"""A v2 document becomes a job: a pipeline of one parallel step, or a parallel component by itself (reference §2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parallelrun_core.azure import bindings
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.findings import Findings, Location, as_mapping
from parallelrun_core.azure.part import Part
from parallelrun_core.azure.v2_models import Pipeline, Resources, RetrySettings, Settings, Step, Task
from parallelrun_core.azure.v2_step import StepReader, check_identity, note_placing


def is_v2(document: Mapping[Any, Any]) -> bool:
    """Whether this is a v2 document: it has a type, or steps."""
    return isinstance(document.get("type"), str) or "jobs" in document


def read_v2(document: Mapping[str, Any], location: Location, findings: Findings) -> Draft:
    """The job that a v2 document describes."""
    kind = str(document.get("type", "pipeline" if "jobs" in document else "")).lower()
    if kind == "pipeline":
        return _read_pipeline(document, location, findings)
    if kind == "parallel":
        return _read_component(document, location, findings)
    findings.wrong("/type", f"a job of type {document.get('type')!r} can't be run", "type: parallel or type: pipeline")
    findings.check()
    raise AssertionError


# Pipelines and components


def _read_pipeline(document: Mapping[str, Any], location: Location, findings: Findings) -> Draft:
    pipeline = findings.validate(Pipeline, document, location.pointer, _fields_of_a_step(document)) or Pipeline()
    settings = findings.validate(Settings, document.get("settings") or {}, location.at("settings")) or Settings()
    if pipeline.component is not None:
        findings.wrong(location.at("component"), "a pipeline component can't be run", "put its steps below jobs")
    name, step = _only_step(document, location, findings)
    if not (step.get("compute") or settings.default_compute or pipeline.compute):
        hint = "settings: {default_compute: azureml:local}; the name has no effect here"
        findings.wrong(location.at("settings", "default_compute"), "no compute is named", hint)
    reader = StepReader(findings, default=location.at("jobs", name))
    reader.put_labels(pipeline.display_name or pipeline.name or name, pipeline.description, pipeline.tags, location)
    scope = reader.scope
    inputs = as_mapping(document.get("inputs"), location.at("inputs"), findings)
    scope.inputs = bindings.pipeline_inputs(inputs, location.below("inputs"), findings)
    scope.default_datastore = (settings.default_datastore or "").removeprefix("azureml:")
    outputs = as_mapping(document.get("outputs"), location.at("outputs"), findings)
    scope.outputs = bindings.pipeline_outputs(outputs, scope, location.below("outputs"))
    note_placing({"default_compute": settings.default_compute}, location.below("settings"), findings)
    note_placing({"compute": pipeline.compute}, location, findings)
    check_identity(document, location, findings)
    reader.read(step, location.below("jobs", name))
    return reader.draft


def _fields_of_a_step(document: Mapping[str, Any]) -> dict[str, str]:
    """Hints for fields that belong to the step, not to the pipeline."""
    jobs = document.get("jobs")
    step = next((str(name) for name, step in jobs.items() if step), "NAME") if isinstance(jobs, dict) else "NAME"
    parts: dict[str, type[Part]] = {
        "retry_settings.": RetrySettings,
        "resources.": Resources,
        "task.": Task,
        "": Step,
    }
    fields = {name: f"jobs.{step}.{part}{name}" for part, model in parts.items() for name in model.model_fields}
    return {name: f"it is a field of the step: {field}" for name, field in fields.items()}


def _only_step(document: Mapping[str, Any], location: Location, findings: Findings) -> tuple[str, Mapping[str, Any]]:
    """The name of the only step, and the step."""
    jobs = as_mapping(document.get("jobs"), location.at("jobs"), findings)
    steps = {name: step for name, step in jobs.items() if step is not None}
    unmeant = [name for name, step in steps.items() if isinstance(step, dict) and not {"type", "component"} & set(step)]
    if unmeant and len(steps) == len(unmeant) + 1:  # --set with a wrong name creates such a step
        (only,) = set(steps) - set(unmeant)
        for name in unmeant:
            hint = f"the step is called {only!r}"
            findings.wrong(location.at("jobs", name), "this step has neither type nor component", hint)
        findings.check()
    if len(steps) != 1:
        what = f"{len(steps)} steps ({', '.join(map(str, steps))})" if steps else "no step"
        hint = "leave the others out, as in --set jobs.NAME=null, and give the inputs the paths of their outputs"
        findings.wrong(location.at("jobs"), f"a pipeline of one parallel step can be run; this one has {what}", hint)
        findings.check()
    name, raw = next(iter(steps.items()))
    step = as_mapping(raw, location.at("jobs", name), findings)
    kind = str(step.get("type", "parallel" if "component" in step else ""))
    if kind.lower() != "parallel":
        message = f"a step of type {kind!r} can't be run; one of type parallel can"
        hint = "run it yourself, and give the parallel step the paths of its outputs"
        findings.wrong(location.at("jobs", name, "type"), message, hint)
        findings.check()
    return str(name), step


def _read_component(document: Mapping[str, Any], location: Location, findings: Findings) -> Draft:
    """A parallel document by itself: its declared inputs have their own paths and values."""
    reader = StepReader(findings, default=location.pointer)
    label = document.get("display_name") or document.get("name")
    reader.put_labels(label, document.get("description"), document.get("tags"), location)
    if "component" in document:
        reader.read(document, location)
        return reader.draft
    declared = as_mapping(document.get("inputs"), location.at("inputs"), findings)
    plain = {name: value for name, value in declared.items() if isinstance(value, bool | int | float)}
    given = {name: value for name, value in declared.items() if isinstance(value, dict) and _is_given(value)}
    component = {**document, "inputs": declared | {name: {} for name in plain}}
    reader.read({"component": component, "inputs": plain | given}, location, own=location)
    return reader.draft


def _is_given(declared: Mapping[str, Any]) -> bool:
    return any(declared.get(name) is not None for name in ("path", "value"))
