"""A parallel step of a pipeline, with the component that it may refer to, becomes a job (reference §1.3, §2.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from parallelrun_core.azure import bindings
from parallelrun_core.azure.components import open_component
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import read_environment
from parallelrun_core.azure.findings import Findings, Location, as_mapping, quoted
from parallelrun_core.azure.named import named_code
from parallelrun_core.azure.v2_models import (
    Component,
    Identity,
    Parallel,
    Resources,
    RetrySettings,
    Step,
    Task,
)
from parallelrun_core.spec.expressions import bound_name, same_name, without_absent_parts

INHERITED: Final = (
    "resources", "retry_settings", "input_data", "max_concurrency_per_instance", "mini_batch_error_threshold",
    "mini_batch_size", "partition_keys", "task", "error_threshold", "logging_level", "environment_variables",
)  # fmt: skip
"""Settings that a step takes from its component where its own are missing or falsy (reference §1.3)."""

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
_PLACES_WORK: Final = "it places work in Azure ML, and has no effect here"


class StepReader:
    """Reads one parallel step into a draft."""

    def __init__(self, findings: Findings, *, default: str, is_step: bool = False) -> None:
        self.findings = findings
        self.draft = Draft(default=default, is_step=is_step)
        self.scope = bindings.PipelineScope(findings)

    def put_labels(self, name: Any, description: Any, tags: Any, location: Location) -> None:
        text = label(name)
        self.scope.job_name = text
        self.draft.put("name", text, location.at("display_name"))
        self.draft.put("description", str(description)[:4096] if description else None, location.at("description"))
        if isinstance(tags, dict):
            texts = {str(key): str(value) for key, value in tags.items()}
            self.draft.put("tags", texts, location.at("tags"))

    def read(self, raw: Mapping[str, Any], location: Location, own: Location | None = None) -> None:
        """Read a step.

        Args:
            own: the location of its component, when that is the whole document.
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
        self._inputs = bindings.step_inputs(given_inputs, inputs, self.scope, location.below("inputs"))
        given = as_mapping(raw.get("outputs"), location.at("outputs"), self.findings)
        self._outputs = bindings.step_outputs(given, outputs, self.scope, location.below("outputs"))
        self.draft.put("inputs", self._inputs, location.at("inputs"))
        for name in self._inputs:
            key = same_name(name, given_inputs) or name
            self.draft.origins[f"inputs/{name}"] = self.scope.origins.get(
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
        note_placing({"compute": step.get("compute") or component.get("compute")}, location, self.findings)
        for document, origin in ((component, where), (raw, location)):
            check_identity(document, origin, self.findings)
        if not self.draft.is_step and (step.get("is_deterministic") or component.get("is_deterministic")):
            message = "the result of an earlier job is never reused"
            self.findings.note(location.at("is_deterministic"), message)

    def _component_of(
        self, component: Any, location: Location, own: Location | None
    ) -> tuple[dict[str, Any], Location]:
        """The component that a step refers to, and its location."""
        component, where = open_component(component, own or location.below("component"), self.findings)
        kind = str(component.get("type", "parallel"))
        if kind.lower() != "parallel":
            self.findings.wrong(where.pointer, f"a component of type {kind!r} can't be run", "type: parallel")
        if component.get("resources") and component.get("instance_count") is not None:
            hint = "resources: {instance_count: 2}"
            self.findings.wrong(where.at("instance_count"), "set either instance_count or resources, not both", hint)
        self.findings.check()
        return component, where

    def _checked(self, model: type[Parallel], raw: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """A step or component, checked by itself, with the values of the inputs that its settings are bound to."""
        found = dict(raw)
        for name in _BOUND:
            if name in found:
                value = bindings.setting(found[name], self._inputs, self.scope, location.at(name))
                was_bound = value is not found[name] and value is not None
                found[name] = str(value) if was_bound and name == "mini_batch_size" else value
        for group in ("retry_settings", "resources"):
            if isinstance(found.get(group), dict):
                found[group] = {
                    name: bindings.setting(value, self._inputs, self.scope, location.at(group, name))
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
            note_placing(unused, location, self.findings)

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
                self.findings.wrong(pointer, f"{text!r} is not one of the given inputs", hint)
            else:
                names.append(key)
        self.draft.put("input_data", names, pointer)

    def _put_cut(self, settings: Parallel, locations: Mapping[str, Location]) -> None:
        """How the inputs are cut: if both are set, the keys win (reference §0)."""
        keys = locations["partition_keys"].at("partition_keys")
        if settings.partition_keys and settings.mini_batch_size is not None:
            self.findings.note(keys, "the inputs are cut by partition_keys; mini_batch_size is not used")
        size = None if settings.partition_keys else settings.mini_batch_size
        self.draft.put("mini_batch_size", size, locations["mini_batch_size"].at("mini_batch_size"))
        self.draft.put("partition_keys", settings.partition_keys, keys)

    def _put_task(self, raw: dict[str, Any] | None, location: Location, settings: Parallel) -> None:
        if raw is None:
            hint = "the script to run: {type: run_function, code, entry_script, …}"
            self.findings.wrong(location.pointer, "this field is required", hint)
            return
        task = self.findings.validate(Task, self._with_current_names(raw, location), location.pointer, HINTS)
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
        code = named_code(task.code or "", location.below("code"), self.findings)
        self.draft.put("code", code or location.absolute(task.code or "") or None, location.at("code"))
        self.draft.put("entry_script", task.entry_script, location.at("entry_script"))
        arguments = without_absent_parts(task.program_arguments or "", self._inputs)
        self.draft.put("program_arguments", arguments, location.at("program_arguments"))
        self._put_append_row_to(task.append_row_to, location.at("append_row_to"))

    def _with_current_names(self, raw: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """A task with the current names of its fields; early examples have others."""
        task = dict(raw)
        if "args" in task and "program_arguments" not in task:
            self.findings.note(location.at("args"), "read as program_arguments, its current name")
            task["program_arguments"] = task.pop("args")
        kind = task.get("type")
        if isinstance(kind, str) and kind.lower() == "function":
            self.findings.note(location.at("type"), "read as run_function, its current name")
        elif isinstance(kind, str) and kind.lower() != "run_function":
            self.findings.wrong(location.at("type"), f"a task of type {kind!r} can't be run", "type: run_function")
        return task

    def _put_append_row_to(self, value: str | None, pointer: str) -> None:
        self.draft.put("output_action", "summary_only" if value is None else "append_row", pointer)
        if value is None:
            return
        name = bound_name(value, "outputs")
        if name == value:
            message = f"{value!r} must be ${{{{outputs.NAME}}}} and nothing else"
            self.findings.wrong(pointer, message, f"one of the outputs: {quoted(self._outputs)}")
        elif same_name(name, self._outputs) is None:
            self.findings.wrong(pointer, f"{value!r} is not one of the outputs", f"they are: {quoted(self._outputs)}")
        else:
            self.draft.put("append_row_to", name, pointer)


def _merged(
    step: Mapping[str, Any], component: Mapping[str, Any], location: Location, where: Location
) -> tuple[dict[str, Any], dict[str, Location]]:
    """The settings of a step, completed by those of its component, and the location of each."""
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


def label(name: Any) -> str:
    """A name as a label of a job."""
    return re.sub(r"[^A-Za-z0-9 ._-]", "_", str(name or "job"))[:128].lstrip(" ._-") or "job"


def note_placing(values: Mapping[str, Any], location: Location, findings: Findings) -> None:
    for name, value in values.items():
        if value is not None:
            findings.note(location.at(name), _PLACES_WORK)


def check_identity(raw: Mapping[str, Any], location: Location, findings: Findings) -> None:
    identity = raw.get("identity")
    if identity is not None and findings.validate(Identity, identity, location.at("identity")) is not None:
        findings.note(location.at("identity"), "jobs run with the rights of the node's agent")
