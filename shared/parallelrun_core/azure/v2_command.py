"""A command step of a pipeline, or a command job by itself, becomes a job with a command.

Its inputs and outputs, its component and its bindings are read as those of a parallel step (`v2_reader.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from parallelrun_core.azure.bindings import ARTIFACTS
from parallelrun_core.azure.findings import DocumentLocation
from parallelrun_core.azure.part import DocumentPart, Label, LabelledJob
from parallelrun_core.azure.v2_reader import HINTS as COMMON_HINTS
from parallelrun_core.azure.v2_reader import V2Reader, merged
from parallelrun_core.names.assets import INCLUDES, STORED_ALREADY, stored_code
from parallelrun_core.spec.command import MAX_SECONDS
from parallelrun_core.spec.expressions import same_name

_INHERITED: Final = (
    "command", "code", "environment", "environment_variables", "resources", "limits", "distribution",
)  # fmt: skip
"""Settings that a step takes from its component where it has none of its own."""
_HINTS: Final = {
    **COMMON_HINTS,
    "command": "it is one string: command: python train.py --data ${{inputs.data}}",
    "timeout": f"whole seconds, at most {MAX_SECONDS:,}",
    "task": "it is a field of parallel jobs; here, set command, code and environment",
    INCLUDES: "it is a list of paths, relative to the file of the component; what is in Azure DevOps can't be had",
    "component": "it is a field of steps; put this document's path into a step",
}
_PROCESSES: Final = {
    "pytorch": ("process_count_per_instance",),
    "mpi": ("process_count_per_instance",),
    "tensorflow": ("worker_count", "parameter_server_count"),
    "ray": (),
}
_SPREAD: Final = "leave it out; a parallel job runs on many nodes, and a command may start processes itself"
_ALONE: Final = {
    "RANK": "0", "LOCAL_RANK": "0", "NODE_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "6105",
}  # fmt: skip
"""What a process of PyTorch finds that is the only one."""


class CommandLimits(DocumentPart):
    """The limits of a command: how long it may run."""

    timeout: Annotated[StrictInt, Field(gt=0, le=MAX_SECONDS)] | None = None


class Distribution(DocumentPart):
    """The distribution of a command: how many processes run it. Here, it is one."""

    type: Literal["pytorch", "mpi", "tensorflow", "ray"]
    process_count_per_instance: StrictInt | None = None
    worker_count: StrictInt | None = None
    parameter_server_count: StrictInt | None = None
    port: Any = None
    address: Any = None
    include_dashboard: Any = None
    dashboard_port: Any = None
    head_node_additional_args: Any = None
    worker_node_additional_args: Any = None

    def processes(self) -> dict[str, int]:
        """The counts that are more than one, by their fields."""
        counts = {name: getattr(self, name) for name in _PROCESSES[self.type]}
        return {name: count for name, count in counts.items() if count is not None and count > 1}


class Command(LabelledJob):
    """The fields that a job, a step and a component share."""

    experiment_name: Label = None
    command: StrictStr | None = None
    code: StrictStr | None = None
    environment: Any = None
    environment_variables: dict[str, StrictStr] | None = None
    resources: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    distribution: dict[str, Any] | None = None
    services: dict[str, Any] | None = None
    queue_settings: dict[str, Any] | None = None
    is_deterministic: StrictBool | None = None
    parent_job_name: Label = None


class CommandStep(Command):
    component: Any = None


class CommandComponent(Command):
    instance_count: StrictInt | None = None
    additional_includes: list[StrictStr] | None = None


class CommandReader(V2Reader):
    """Reads one command job, or a step of that type, into a draft."""

    kind = "command"
    _is_spread = False
    """True once several nodes or processes were refused."""

    def _put_fields(
        self, raw: Mapping[str, Any], component: Mapping[str, Any], location: DocumentLocation, where: DocumentLocation
    ) -> None:
        component = self._checked(CommandComponent, component, where)
        step = self._checked(CommandStep, raw, location)
        self._check_inputs(location)
        self.findings.check()
        self._mark_artifacts()
        settings, locations = merged(step, component, location, where, _INHERITED)
        at = locations["command"].at("command")
        if not settings.get("command"):
            self.findings.wrong(at, "this field is required", _HINTS["command"])
        self.draft.put("command", settings.get("command"), at)
        self._put_code(settings.get("code") or "", locations["code"].below("code"))
        self._put_includes(component.get(INCLUDES) or [], where.below(INCLUDES))
        self._put_one_node(settings.get("resources"), locations["resources"].below("resources"))
        self._put_limits(settings.get("limits"), locations["limits"].below("limits"))
        at_distribution = locations["distribution"].below("distribution")
        alone = self._variables_of_one_process(settings.get("distribution"), at_distribution)
        variables = {**alone, **settings.get("environment_variables", {})}
        self._put_environment(settings.get("environment"), locations["environment"].below("environment"), variables)
        for document, origin in ((component, where), (step, location)):
            self._note_rest(document, origin)

    def _put_includes(self, includes: list[str], location: DocumentLocation) -> None:
        """Put what is copied beside the code."""
        if includes and stored_code(self.draft.fields.get("code") or ""):
            self.findings.wrong(location.pointer, *STORED_ALREADY)
        if includes:
            code_files = self.draft.fields.get(INCLUDES, ())
            self.draft.put(INCLUDES, [*code_files, *map(location.absolute, includes)], location.pointer)

    def _checked(self, model: type[Command], raw: Mapping[str, Any], location: DocumentLocation) -> dict[str, Any]:
        """A step or component, checked by itself, with the values of the inputs that its settings are bound to."""
        fields = self._with_bound_values(raw, location, (), ("limits", "resources", "distribution"))
        is_open = not self._is_whole and (model is CommandComponent or raw.get("component") is not None)
        self.findings.validate(model, fields, location.pointer, _HINTS, ignores_unknown=is_open)
        return fields

    def _check_inputs(self, location: DocumentLocation) -> None:
        """A command gets paths, and nobody reads what is behind them for it."""
        for name, fields in self._inputs.items():
            where = location.below("inputs", name)
            if str(fields.get("mode")).startswith("eval_"):
                hint = "mode: ro_mount, and mltable.load(PATH) in the program"
                message = f"a command gets the path of an MLTable, so mode {fields['mode']!r} can't be"
                self.findings.wrong(where.at("mode"), message, hint)
            if fields.get("transformations"):
                message = "a command reads its files itself; only a parallel job has them read"
                hint = "leave them out: the program gets the path of the files"
                self.findings.wrong(where.at("transformations"), message, hint)

    def _mark_artifacts(self) -> None:
        """Mark the output of this name as what a command writes to `outputs` of its working folder."""
        name = same_name(ARTIFACTS, self._outputs)
        if name is not None and self._outputs[name].get("type") == "uri_folder":
            self._outputs[name] = {**self._outputs[name], "has_artifacts": True}
            self.draft.put("outputs", self._outputs, self.draft.origins["outputs"])

    def _put_one_node(self, value: Any, location: DocumentLocation) -> None:
        count = (value or {}).get("instance_count")
        if isinstance(count, int) and count > 1:
            self._refuse_spread(location.at("instance_count"), count)
            value = {**value, "instance_count": None}
        self._put_resources(value, location)

    def _refuse_spread(self, at: str, count: int) -> None:
        """Refuse several nodes or processes: in one sentence, once for each command."""
        if not self._is_spread:
            message = f"a command runs on one node, as one process; this asks for {count:,}"
            self.findings.wrong(at, message, _SPREAD)
        self._is_spread = True

    def _put_limits(self, value: Any, location: DocumentLocation) -> None:
        limits = self.findings.validate(CommandLimits, value or {}, location.pointer, _HINTS)
        if limits is not None:
            self.draft.put("run_invocation_timeout", limits.timeout, location.at("timeout"))

    def _variables_of_one_process(self, value: Any, location: DocumentLocation) -> dict[str, str]:
        """Return what a process finds in its environment that was distributed to one."""
        if value is None:
            return {}
        document = {**value, "type": str(value.get("type")).lower()}
        distribution = self.findings.validate(Distribution, document, location.pointer)
        if distribution is None:
            return {}
        for name, count in distribution.processes().items():
            self._refuse_spread(location.at(name), count)
        self.findings.note(location.pointer, "the command runs as one process on one node")
        return _ALONE if distribution.type == "pytorch" else {}

    def _note_rest(self, document: Mapping[str, Any], location: DocumentLocation) -> None:
        if document.get("parent_job_name"):
            self.findings.note(location.at("parent_job_name"), "a job by itself has no parent here")
        if document.get("services"):
            self.findings.note(location.at("services"), "no services are opened beside a job")
        if document.get("queue_settings"):
            self.findings.note(location.at("queue_settings"), "jobs start in the order in which they come")
