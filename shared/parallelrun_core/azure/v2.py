"""A v2 document becomes a job: a pipeline of one parallel step, or a parallel component by itself (reference §2.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from parallelrun_core.azure import bindings
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import read_environment, read_file
from parallelrun_core.azure.findings import Findings, Location, as_mapping, quoted
from parallelrun_core.azure.part import Part
from parallelrun_core.azure.v2_models import (
    Component,
    Identity,
    Parallel,
    Pipeline,
    Resources,
    RetrySettings,
    Settings,
    Step,
    Task,
)
from parallelrun_core.spec.arguments import bound_name, same_name

INHERITED: Final = (
    "resources", "retry_settings", "input_data", "max_concurrency_per_instance", "mini_batch_error_threshold",
    "mini_batch_size", "partition_keys", "task", "error_threshold", "logging_level", "environment_variables",
)  # fmt: skip
"""What a step has from its component when it says nothing, or something falsy, itself (reference §1.3)."""

HINTS: Final = {
    "mini_batch_size": 'it is a string: mini_batch_size: "10"',
    "program_arguments": "it is one string: program_arguments: --a 1 --b 2",
    "partition_keys": "it is a list of names: partition_keys: [store, brand]",
    "append_row_to": "it belongs below task",
    "environment_variables": 'each value is a string: NAME: "1"',
    "logging_level": "DEBUG, INFO or WARNING, in capitals",
    "environment": "as in environment: {conda_file: conda.yml}; azureml:NAME@latest means the node's own Python",
    "entry_script": "the file below code with run(mini_batch)",
}
_BOUND: Final = ("mini_batch_size", "max_concurrency_per_instance", "error_threshold", "mini_batch_error_threshold")
_PLACES_WORK: Final = "places work in Azure ML; it has no effect here"


def is_v2(document: Mapping[Any, Any]) -> bool:
    """Whether this is meant as a v2 document: it says so, or has steps."""
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
    reader = _StepReader(findings, default=location.at("jobs", name))
    reader.put_labels(pipeline.display_name or pipeline.name or name, pipeline.description, pipeline.tags, location)
    pipe = reader.pipe
    inputs = as_mapping(document.get("inputs"), location.at("inputs"), findings)
    pipe.inputs = bindings.pipeline_inputs(inputs, location.below("inputs"), findings)
    outputs = as_mapping(document.get("outputs"), location.at("outputs"), findings)
    pipe.outputs = bindings.pipeline_outputs(outputs, pipe, location.below("outputs"))
    stores = {"default_compute": settings.default_compute, "default_datastore": settings.default_datastore}
    _note_placing(stores, location.below("settings"), findings)
    _note_placing({"compute": pipeline.compute}, location, findings)
    _check_identity(document, location, findings)
    reader.read(step, location.below("jobs", name))
    return reader.draft


def _fields_of_a_step(document: Mapping[str, Any]) -> dict[str, str]:
    """What to do about a field that a pipeline doesn't have, and its step has."""
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
    """The name of the one step that there is, and the step."""
    jobs = as_mapping(document.get("jobs"), location.at("jobs"), findings)
    steps = {name: step for name, step in jobs.items() if step is not None}
    unmeant = [name for name, step in steps.items() if isinstance(step, dict) and not {"type", "component"} & set(step)]
    if unmeant and len(steps) == len(unmeant) + 1:  # what --set makes of a name that isn't there
        (only,) = set(steps) - set(unmeant)
        for name in unmeant:
            hint = f"the step is called {only!r}"
            findings.wrong(location.at("jobs", name), "this step has neither type nor component", hint)
        findings.check()
    if len(steps) != 1:
        what = f"{len(steps)} steps ({', '.join(map(str, steps))})" if steps else "no step"
        hint = "leave the others out, as in --set jobs.NAME=null, and give the inputs the paths of what those make"
        findings.wrong(location.at("jobs"), f"a pipeline of one parallel step can be run; this one has {what}", hint)
        findings.check()
    name, raw = next(iter(steps.items()))
    step = as_mapping(raw, location.at("jobs", name), findings)
    kind = str(step.get("type", "parallel" if "component" in step else ""))
    if kind.lower() != "parallel":
        message = f"a step of type {kind!r} can't be run; one of type parallel can"
        hint = "run it yourself, and give the parallel step the paths of what it makes"
        findings.wrong(location.at("jobs", name, "type"), message, hint)
        findings.check()
    return str(name), step


def _read_component(document: Mapping[str, Any], location: Location, findings: Findings) -> Draft:
    """A parallel document that stands alone: its declared inputs hold their own paths and values."""
    reader = _StepReader(findings, default=location.pointer)
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


class _StepReader:
    """Reads one parallel step into a draft."""

    def __init__(self, findings: Findings, *, default: str) -> None:
        self.findings = findings
        self.draft = Draft(default=default)
        self.pipe = bindings.Pipe(findings)

    def put_labels(self, name: Any, description: Any, tags: Any, location: Location) -> None:
        text = re.sub(r"[^A-Za-z0-9 ._-]", "_", str(name or "job"))[:128].lstrip(" ._-") or "job"
        self.pipe.job_name = text
        self.draft.put("name", text, location.at("display_name"))
        self.draft.put("description", str(description)[:4096] if description else None, location.at("description"))
        if isinstance(tags, dict):
            texts = {str(key): str(value) for key, value in tags.items()}
            self.draft.put("tags", texts, location.at("tags"))

    def read(self, raw: Mapping[str, Any], location: Location, own: Location | None = None) -> None:
        """Read a step.

        Args:
            own: where its component is from, when the component is the whole document.
        """
        component: dict[str, Any] = {}
        where = location
        inputs, outputs = None, None
        if raw.get("component") is not None:
            component, where = self._component_of(raw["component"], location, own)
            declared = as_mapping(component.get("inputs"), where.at("inputs"), self.findings)
            inputs = bindings.declarations(declared, where.below("inputs"), self.findings)
            outputs = as_mapping(component.get("outputs"), where.at("outputs"), self.findings)
        given_inputs = as_mapping(raw.get("inputs"), location.at("inputs"), self.findings)
        self._inputs = bindings.step_inputs(given_inputs, inputs, self.pipe, location.below("inputs"))
        given = as_mapping(raw.get("outputs"), location.at("outputs"), self.findings)
        self._outputs = bindings.step_outputs(given, outputs, self.pipe, location.below("outputs"))
        self.draft.put("inputs", self._inputs, location.at("inputs"))
        for name in self._inputs:
            key = same_name(name, given_inputs) or name
            self.draft.origins[f"inputs/{name}"] = self.pipe.origins.get(
                location.at("inputs", key), location.at("inputs", key)
            )
        self.draft.put("outputs", self._outputs, location.at("outputs"))
        component = self._checked(Component, component, where)
        step = self._checked(Step, raw, location)
        self.findings.check()
        merged, locations = _merged(step, component, location, where)
        settings = Parallel.model_validate(merged)
        self._put_settings(settings, locations)
        self._put_task(merged.get("task"), locations["task"].below("task"), settings)
        _note_placing({"compute": step.get("compute") or component.get("compute")}, location, self.findings)
        for document, origin in ((component, where), (raw, location)):
            _check_identity(document, origin, self.findings)
        if step.get("is_deterministic") or component.get("is_deterministic"):
            message = "the result of an earlier job is never taken in place of this one"
            self.findings.note(location.at("is_deterministic"), message)

    def _component_of(
        self, component: Any, location: Location, own: Location | None
    ) -> tuple[dict[str, Any], Location]:
        """The component that a step refers to, and where it is from."""
        where = own or location.below("component")
        if isinstance(component, str):
            if component.startswith("azureml:"):
                message = f"the component {component!r} is kept by Azure ML, and can't be fetched"
                self.findings.wrong(where.pointer, message, "save its YAML as a file, and give the path of that")
                self.findings.check()
            beside = Path(location.absolute(component)).parent if location.folder is not None else None
            component = read_file(component, where, self.findings)
            where = Location(where.pointer, beside)
            self.findings.check()
        component = as_mapping(component, where.pointer, self.findings)
        kind = str(component.get("type", "parallel"))
        if kind.lower() != "parallel":
            self.findings.wrong(where.pointer, f"a component of type {kind!r} can't be run", "type: parallel")
        if component.get("resources") and component.get("instance_count") is not None:
            hint = "resources: {instance_count: 2}"
            self.findings.wrong(where.at("instance_count"), "either this or resources", hint)
        self.findings.check()
        return component, where

    def _checked(self, model: type[Parallel], raw: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """A step or component, found right in itself, with the values of the inputs that its settings are bound to."""
        found = dict(raw)
        for name in _BOUND:
            if name in found:
                value = bindings.filled(found[name], self._inputs, self.pipe, location.at(name))
                was_bound = value is not found[name] and value is not None
                found[name] = str(value) if was_bound and name == "mini_batch_size" else value
        for group in ("retry_settings", "resources"):
            if isinstance(found.get(group), dict):
                found[group] = {
                    name: bindings.filled(value, self._inputs, self.pipe, location.at(group, name))
                    for name, value in found[group].items()
                }
        if "mini_batch_size" in raw and raw["mini_batch_size"] is None:
            self.findings.wrong(location.at("mini_batch_size"), "must be a string", HINTS["mini_batch_size"])
        self.findings.validate(model, found, location.pointer, HINTS)
        return found

    def _put_settings(self, settings: Parallel, locations: Mapping[str, Location]) -> None:
        arguments = str((settings.task or {}).get("program_arguments"))
        if settings.input_data is not None or "--rank_mini_batch_count" not in arguments:
            self._put_input_data(settings.input_data, locations["input_data"].at("input_data"))
        for name in ("max_concurrency_per_instance", "error_threshold", "mini_batch_error_threshold", "logging_level"):
            self.draft.put(name, getattr(settings, name), locations[name].at(name))
        self._put_cut(settings, locations)
        location = locations["retry_settings"].below("retry_settings")
        retries = self.findings.validate(RetrySettings, settings.retry_settings or {}, location.pointer)
        if retries is not None:
            tries = None if retries.max_retries is None else retries.max_retries + 1
            self.draft.put("run_max_try", tries, location.at("max_retries"))
            self.draft.put("run_invocation_timeout", retries.timeout, location.at("timeout"))
        location = locations["resources"].below("resources")
        resources = self.findings.validate(Resources, settings.resources or {}, location.pointer)
        if resources is not None:
            self.draft.put("instance_count", resources.instance_count, location.at("instance_count"))
            unused = {name: value for name, value in resources if name != "instance_count"}
            _note_placing(unused, location, self.findings)

    def _put_input_data(self, value: Any, pointer: str) -> None:
        bindable = quoted(name for name, fields in self._inputs.items() if "path" in fields)
        hint = f"as in input_data: ${{{{inputs.NAME}}}}; inputs with a path: {bindable}"
        names = []
        for text in value if isinstance(value, list) else [value]:
            name = bound_name(text, "inputs") if isinstance(text, str) else ""
            key = same_name(name, self._inputs)
            if text is None:
                self.findings.wrong(pointer, "this field is required", hint)
            elif not isinstance(text, str) or name == text:
                self.findings.wrong(pointer, f"{text!r} is not an expression", hint)
            elif key is None:
                self.findings.wrong(pointer, f"{text!r} is not among the inputs that are given", hint)
            else:
                names.append(key)
        self.draft.put("input_data", names, pointer)

    def _put_cut(self, settings: Parallel, locations: Mapping[str, Location]) -> None:
        """What a mini-batch is: with both, the keys win (reference §0)."""
        keys = locations["partition_keys"].at("partition_keys")
        if settings.partition_keys and settings.mini_batch_size is not None:
            self.findings.note(keys, "partition_keys says what a mini-batch is; mini_batch_size is not used")
        size = None if settings.partition_keys else settings.mini_batch_size
        self.draft.put("mini_batch_size", size, locations["mini_batch_size"].at("mini_batch_size"))
        self.draft.put("partition_keys", settings.partition_keys, keys)

    def _put_task(self, raw: dict[str, Any] | None, location: Location, settings: Parallel) -> None:
        if raw is None:
            hint = "what is run: {type: run_function, code, entry_script, …}"
            self.findings.wrong(location.pointer, "this field is required", hint)
            return
        task = self.findings.validate(Task, self._todays(raw, location), location.pointer, HINTS)
        if task is None:
            return
        environment: dict[str, Any] = {}
        variables: dict[str, str] = {}
        if task.environment is None:
            self.findings.wrong(location.at("environment"), "this field is required", HINTS["environment"])
        else:
            where = location.below("environment")
            environment, variables = read_environment(task.environment, where, self.findings)
        self.draft.put("environment", environment, location.at("environment"))
        variables = {**variables, **(settings.environment_variables or {})}
        self.draft.put("environment_variables", variables, f"{self.draft.default}/environment_variables")
        self.draft.put("code", location.absolute(task.code or "") or None, location.at("code"))
        self.draft.put("entry_script", task.entry_script, location.at("entry_script"))
        arguments = bindings.without_absent_options(task.program_arguments or "", self._inputs)
        self.draft.put("program_arguments", arguments, location.at("program_arguments"))
        self._put_append_row_to(task.append_row_to, location.at("append_row_to"))

    def _todays(self, raw: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """A task with the names that its fields have today; early examples have others."""
        task = dict(raw)
        if "args" in task and "program_arguments" not in task:
            self.findings.note(location.at("args"), "read as program_arguments, its name today")
            task["program_arguments"] = task.pop("args")
        kind = task.get("type")
        if isinstance(kind, str) and kind.lower() == "function":
            self.findings.note(location.at("type"), "read as run_function, its name today")
        elif isinstance(kind, str) and kind.lower() != "run_function":
            self.findings.wrong(location.at("type"), f"a task of type {kind!r} can't be run", "type: run_function")
        return task

    def _put_append_row_to(self, value: str | None, pointer: str) -> None:
        self.draft.put("output_action", "summary_only" if value is None else "append_row", pointer)
        if value is None:
            return
        name = bound_name(value, "outputs")
        if name == value:
            message = f"{value!r} is not ${{{{outputs.NAME}}}}, or not that alone"
            self.findings.wrong(pointer, message, f"one of the outputs: {quoted(self._outputs)}")
        elif same_name(name, self._outputs) is None:
            self.findings.wrong(pointer, f"{value!r} is not among the outputs", f"they are: {quoted(self._outputs)}")
        else:
            self.draft.put("append_row_to", name, pointer)


def _merged(
    step: Mapping[str, Any], component: Mapping[str, Any], location: Location, where: Location
) -> tuple[dict[str, Any], dict[str, Location]]:
    """The settings of a step with those of its component where the step has nothing, and where each is from."""
    merged: dict[str, Any] = {}
    locations: dict[str, Location] = {}
    if component.get("instance_count") is not None:
        component = {**component, "resources": {"instance_count": component["instance_count"]}}
    for name in INHERITED:
        inherits = not step.get(name) and component.get(name) is not None
        locations[name] = where if inherits else location
        value = component[name] if inherits else step.get(name)
        if name == "environment_variables":
            value = {**(component.get(name) or {}), **(step.get(name) or {})}
        if value is not None:
            merged[name] = value
    return merged, locations


def _note_placing(values: Mapping[str, Any], location: Location, findings: Findings) -> None:
    for name, value in values.items():
        if value is not None:
            findings.note(location.at(name), _PLACES_WORK)


def _check_identity(raw: Mapping[str, Any], location: Location, findings: Findings) -> None:
    identity = raw.get("identity")
    if identity is not None and findings.validate(Identity, identity, location.at("identity")) is not None:
        findings.note(location.at("identity"), "jobs run with the rights of the node's agent")
