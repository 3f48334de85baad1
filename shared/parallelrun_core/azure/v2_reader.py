"""The base of all readers of one step, whatever it runs (reference §1.3, §2.1)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from parallelrun_core.azure import bindings, output_bindings
from parallelrun_core.azure.components import open_component
from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import read_environment
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping
from parallelrun_core.azure.named import named_code
from parallelrun_core.azure.scope import Fields, PipelineScope
from parallelrun_core.azure.v2_models import Identity, Resources
from parallelrun_core.names.assets import INCLUDES
from parallelrun_core.names.computes import NOTE
from parallelrun_core.spec.expressions import same_name
from parallelrun_core.spec.fields import MAX_JOB_NAME

HINTS: Final = {
    "environment_variables": 'each value is a string: NAME: "1"',
    "environment": "as in environment: {conda_file: conda.yml}; azureml:NAME@latest means the node's own Python",
}
_NUMBERS: Final = frozenset({
    "max_concurrency_per_instance", "error_threshold", "mini_batch_error_threshold", "max_retries", "timeout",
    "instance_count", "max_instance_count", "process_count_per_instance", "worker_count", "parameter_server_count",
})  # fmt: skip
"""Settings that are whole numbers. Inputs without a type come as texts through Azure ML's client."""
_WHOLE: Final = re.compile("-?[0-9]{1,18}")
_UNLESS_NONE: Final = frozenset({"error_threshold", "logging_level"})
"""Settings of a step that count as they stand: where Azure ML's client takes that of a component for 0, it is not by
them (reference §1.3)."""
_PLACES_WORK: Final = "it places work in Azure ML, and has no effect here"


class V2Reader(ABC):
    """Reads one step, with the component that it may refer to, into a draft."""

    kind: ClassVar[str]
    """The type of the steps, and of their components."""

    def __init__(self, findings: Findings, *, default: str, is_step: bool = False) -> None:
        self.findings = findings
        self.draft = Draft(default=default, is_step=is_step)
        self.scope = PipelineScope(findings)
        self._is_whole = False
        """Whether the component is the whole document."""
        self._inputs: dict[str, Fields] = {}
        self._outputs: dict[str, Fields] = {}

    def put_labels(self, name: Any, description: Any, tags: Any, location: DocumentLocation) -> None:
        text = label(name)
        self.scope.job_name = text
        self.draft.put("name", text, location.at("display_name"))
        self.draft.put("description", str(description)[:4096] if description else None, location.at("description"))
        if isinstance(tags, dict):
            texts = {str(key): str(value) for key, value in tags.items()}
            self.draft.put("tags", texts, location.at("tags"))

    def read(
        self, raw: Mapping[str, Any], location: DocumentLocation, component_location: DocumentLocation | None = None
    ) -> None:
        """Read a step.

        Args:
            component_location: the location of its component, when that is the whole document.
        """
        component: dict[str, Any] = {}
        where = location
        self._is_whole = component_location is not None
        if raw.get("component") is not None:
            component, where = self._component_of(raw["component"], location, component_location)
        self._put_interface(raw, component, location, where)
        self._put_fields(raw, component, location, where)
        self._put_compute(raw.get("compute") or component.get("compute"), location)
        for document, origin in ((component, where), (raw, location)):
            check_identity(document, origin, self.findings)
        if not self.draft.is_step and (raw.get("is_deterministic") or component.get("is_deterministic")):
            message = "the result of an earlier job is never reused"
            self.findings.note(location.at("is_deterministic"), message)

    @abstractmethod
    def _put_fields(
        self, raw: Mapping[str, Any], component: Mapping[str, Any], location: DocumentLocation, where: DocumentLocation
    ) -> None:
        """Read all but inputs, outputs, and what has no effect here.

        Args:
            where: the location of the component.
        """

    def _component_of(
        self, component: Any, location: DocumentLocation, component_location: DocumentLocation | None
    ) -> tuple[dict[str, Any], DocumentLocation]:
        component, where = open_component(component, component_location or location.below("component"), self.findings)
        kind = str(component.get("type", self.kind))
        if kind.lower() != self.kind:
            self.findings.wrong(where.pointer, f"a component of type {kind!r} can't be run", f"type: {self.kind}")
        if component.get("resources") and component.get("instance_count") is not None:
            hint = "resources: {instance_count: 2}"
            self.findings.wrong(where.at("instance_count"), "set either instance_count or resources, not both", hint)
        self.findings.check()
        return component, where

    def _put_interface(
        self, raw: Mapping[str, Any], component: Mapping[str, Any], location: DocumentLocation, where: DocumentLocation
    ) -> None:
        """The inputs and outputs, as the component declares them, if there is one."""
        inputs, outputs = None, None
        if raw.get("component") is not None:
            declared = as_mapping(component.get("inputs"), where.at("inputs"), self.findings)
            inputs = bindings.declarations(declared, where.below("inputs"), self.findings)
            outputs = as_mapping(component.get("outputs"), where.at("outputs"), self.findings)
        given_inputs = as_mapping(raw.get("inputs"), location.at("inputs"), self.findings)
        self._inputs = bindings.step_inputs(given_inputs, inputs, self.scope, location.below("inputs"))
        raw_outputs = as_mapping(raw.get("outputs"), location.at("outputs"), self.findings)
        self._outputs = output_bindings.step_outputs(
            raw_outputs, outputs, self.scope, location.below("outputs"), has_artifacts=self.kind == "command"
        )
        self.draft.put("inputs", self._inputs, location.at("inputs"))
        for name in self._inputs:
            key = same_name(name, given_inputs) or name
            self.draft.origins[f"inputs/{name}"] = self.scope.origins.get(
                location.at("inputs", key), location.at("inputs", key)
            )
        self.draft.put("outputs", self._outputs, location.at("outputs"))

    def _with_bound_values(
        self, raw: Mapping[str, Any], location: DocumentLocation, fields: Iterable[str], groups: Iterable[str]
    ) -> dict[str, Any]:
        """A step or component with the values of the inputs that these fields, and those of these groups, are bound
        to."""
        bound = dict(raw)
        for name in fields:
            if name in bound:
                bound[name] = self._bound_value(name, bound[name], location)
        for group in groups:
            if isinstance(bound.get(group), dict):
                bound[group] = {
                    name: self._bound_value(name, value, location.below(group)) for name, value in bound[group].items()
                }
        return bound

    def _bound_value(self, name: str, value: Any, location: DocumentLocation) -> Any:
        """A setting with the value of the input that it is bound to; of one that is a number, its text is read."""
        bound = bindings.setting(value, self._inputs, self.scope, location.at(name))
        if name not in _NUMBERS or not isinstance(bound, str) or not _WHOLE.fullmatch(bound):
            return bound
        if bound is value:
            self.findings.note(location.at(name), f"the text {bound!r} is read as a number, as by Azure ML's client")
        return int(bound)

    def _put_compute(self, compute: Any, location: DocumentLocation) -> None:
        compute = bindings.setting(compute, self._inputs, self.scope, location.at("compute"))
        note_compute({"compute": compute}, location, self.findings)
        named = compute or self.scope.default_compute
        self.draft.put("compute", named if isinstance(named, str) and named else None, location.at("compute"))

    def _put_resources(self, value: Any, location: DocumentLocation) -> None:
        if (value or {}).get("instance_count") == -1:
            self.findings.note(location.at("instance_count"), "-1 is read as not set")
            value = {**value, "instance_count": None}
        resources = self.findings.validate(Resources, value or {}, location.pointer)
        if resources is not None:
            self.draft.put("instance_count", resources.instance_count, location.at("instance_count"))
            unused = {name: value for name, value in resources if name != "instance_count"}
            note_placing(unused, location, self.findings)

    def _put_environment(self, value: Any, location: DocumentLocation, variables: Mapping[str, str] | None) -> None:
        """The environment, and the variables of the step with those that come with it."""
        environment: dict[str, Any] = {}
        environment_variables: dict[str, str] = {}
        if value is None:
            self.findings.wrong(location.pointer, "this field is required", HINTS["environment"])
        else:
            environment, environment_variables = read_environment(value, location, self.findings)
        self.draft.put("environment", environment, location.pointer)
        variables = {**environment_variables, **(variables or {})}
        self.draft.put("environment_variables", variables, f"{self.draft.default}/environment_variables")

    def _put_code(self, code: str, location: DocumentLocation) -> None:
        path = named_code(code, location, self.findings) or location.absolute(code)
        if location.folder is not None and Path(path).is_file():  # the client sends it as all of the code
            self.draft.put(INCLUDES, [path], location.pointer)
        else:
            self.draft.put("code", path or None, location.pointer)


def merged(
    step: Mapping[str, Any],
    component: Mapping[str, Any],
    location: DocumentLocation,
    where: DocumentLocation,
    names: Iterable[str],
) -> tuple[dict[str, Any], dict[str, DocumentLocation]]:
    """The settings of a step with these names, completed by those of its component, and the location of each."""
    settings: dict[str, Any] = {}
    locations: dict[str, DocumentLocation] = {}
    if component.get("instance_count") is not None:
        component = {**component, "resources": {"instance_count": component["instance_count"]}}
    for name in names:
        is_set = step.get(name) is not None if name in _UNLESS_NONE else step.get(name)
        inherits = not is_set and component.get(name) is not None
        locations[name] = where if inherits else location
        value = component[name] if inherits else step.get(name)
        if name == "environment_variables":
            value = {**(component.get(name) or {}), **(step.get(name) or {})}
        if value is not None:
            settings[name] = value
    return settings, locations


def label(name: Any) -> str:
    return re.sub(r"[^A-Za-z0-9 ._-]", "_", str(name or "job"))[:MAX_JOB_NAME].lstrip(" ._-") or "job"


def note_placing(values: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> None:
    """Note what says where Azure ML runs something."""
    for name, value in values.items():
        if value is not None:
            findings.note(location.at(name), _PLACES_WORK)


def note_compute(values: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> None:
    """Note what names a compute: whether there is one, only the server knows."""
    for name, value in values.items():
        if value is not None:
            findings.note(location.at(name), NOTE)


def check_identity(raw: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> None:
    """Check and note the identity under which Azure ML runs something."""
    identity = raw.get("identity")
    if identity is not None and findings.validate(Identity, identity, location.at("identity")) is not None:
        findings.note(location.at("identity"), "jobs run with the rights of the node's agent")
