"""A parallel step of a pipeline, with the component that it may refer to, becomes a job (reference §1.3, §2.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from parallelrun_core.azure.findings import DocumentLocation, quoted
from parallelrun_core.azure.options import hints_of_options
from parallelrun_core.azure.v2_models import Task, V2Component, V2Parallel, V2RetrySettings, V2Step
from parallelrun_core.azure.v2_reader import HINTS as COMMON_HINTS
from parallelrun_core.azure.v2_reader import V2Reader, merged
from parallelrun_core.spec.expressions import bound_name, same_name, without_absent_parts

INHERITED: Final = (
    "resources", "retry_settings", "input_data", "max_concurrency_per_instance", "mini_batch_error_threshold",
    "mini_batch_size", "partition_keys", "task", "error_threshold", "logging_level", "environment_variables",
)  # fmt: skip
"""Settings that a step takes from its component where its own are missing or, but for two, falsy (reference §1.3)."""

HINTS: Final = {
    **hints_of_options("it is among the program_arguments: --{} VALUE", V2Step, V2Component, Task),
    **COMMON_HINTS,
    "mini_batch_size": 'it is a string: mini_batch_size: "10"',
    "program_arguments": "it is one string: program_arguments: --a 1 --b 2",
    "partition_keys": "it is a list of names: partition_keys: [store, brand]",
    "append_row_to": "it belongs below task",
    "logging_level": "DEBUG, INFO or WARNING, in capitals",
    "entry_script": "the file below code with run(mini_batch)",
}
_ZERO: Final = re.compile("0+(kb|mb|gb)?", re.IGNORECASE)
_BOUND: Final = ("mini_batch_size", "max_concurrency_per_instance", "error_threshold", "mini_batch_error_threshold")


class StepReader(V2Reader):
    """Reads one parallel step into a draft."""

    kind = "parallel"

    def _put_fields(
        self, raw: Mapping[str, Any], component: Mapping[str, Any], location: DocumentLocation, where: DocumentLocation
    ) -> None:
        component = self._checked(V2Component, component, where)
        step = self._checked(V2Step, raw, location)
        self.findings.check()
        settings, locations = merged(step, component, location, where, INHERITED)
        for name in INHERITED:
            if isinstance(value := step.get(name), int) and settings[name] != value:
                message = f"{value} is read as not set, as by Azure ML's client: its component has {settings[name]}"
                self.findings.note(location.at(name), message)
        self._put_settings(V2Parallel.model_validate(settings), locations)
        task = settings.get("task")
        self._put_task(task, locations["task"].below("task"), settings.get("environment_variables"))

    def _checked(self, model: type[V2Parallel], raw: Mapping[str, Any], location: DocumentLocation) -> dict[str, Any]:
        """A step or component, checked by itself, with the values of the inputs that its settings are bound to."""
        fields = self._with_bound_values(raw, location, _BOUND, ("retry_settings", "resources"))
        size = fields.get("mini_batch_size")
        if size is not None and size is not raw["mini_batch_size"]:
            fields["mini_batch_size"] = str(size)
        if "mini_batch_size" in raw and raw["mini_batch_size"] is None:
            self.findings.wrong(location.at("mini_batch_size"), "must be a string", HINTS["mini_batch_size"])
        if isinstance(size := fields.get("mini_batch_size"), str) and _ZERO.fullmatch(size):
            self.findings.note(location.at("mini_batch_size"), f"{size} is read as not set, as by Azure ML")
            del fields["mini_batch_size"]
        if fields.get("partition_keys") == []:
            self.findings.note(location.at("partition_keys"), "[] is read as not set, as by Azure ML")
            del fields["partition_keys"]
        is_open = not self._is_whole and (model is V2Component or raw.get("component") is not None)
        self.findings.validate(model, fields, location.pointer, HINTS, ignores_unknown=is_open)
        return fields

    def _put_settings(self, settings: V2Parallel, locations: Mapping[str, DocumentLocation]) -> None:
        arguments = str((settings.task or {}).get("program_arguments"))
        if settings.input_data is not None or "--rank_mini_batch_count" not in arguments:
            self._put_input_data(settings.input_data, locations["input_data"].at("input_data"))
        for name in ("max_concurrency_per_instance", "error_threshold", "mini_batch_error_threshold", "logging_level"):
            self.draft.put(name, getattr(settings, name), locations[name].at(name))
        self._put_cut(settings, locations)
        location = locations["retry_settings"].below("retry_settings")
        raw_settings = settings.retry_settings or {}
        retries = self.findings.validate(V2RetrySettings, raw_settings, location.pointer, ignores_unknown=True)
        if retries is not None:
            tries = None if retries.max_retries is None else retries.max_retries + 1
            self.draft.put("run_max_try", tries, location.at("max_retries"))
            self.draft.put("run_invocation_timeout", retries.timeout, location.at("timeout"))
        self._put_resources(settings.resources, locations["resources"].below("resources"))

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

    def _put_cut(self, settings: V2Parallel, locations: Mapping[str, DocumentLocation]) -> None:
        """Put how the inputs are cut: if both are set, the keys win (reference §0)."""
        keys = locations["partition_keys"].at("partition_keys")
        if settings.partition_keys and settings.mini_batch_size is not None:
            self.findings.note(keys, "the inputs are cut by partition_keys; mini_batch_size is not used")
        size = None if settings.partition_keys else settings.mini_batch_size
        self.draft.put("mini_batch_size", size, locations["mini_batch_size"].at("mini_batch_size"))
        self.draft.put("partition_keys", settings.partition_keys, keys)

    def _put_task(
        self, raw: dict[str, Any] | None, location: DocumentLocation, variables: Mapping[str, str] | None
    ) -> None:
        if raw is None:
            hint = "the script to run: {type: run_function, code, entry_script, …}"
            self.findings.wrong(location.pointer, "this field is required", hint)
            return
        named = self._with_current_names(raw, location)
        task = self.findings.validate(Task, named, location.pointer, HINTS, ignores_unknown=True)
        if task is None:
            return
        if task.model is not None:
            message = "the script gets no model by itself: make it an input, and name that in program_arguments"
            self.findings.note(location.at("model"), message)
        self._put_environment(task.environment, location.below("environment"), variables)
        self._put_code(task.code or "", location.below("code"))
        self.draft.put("entry_script", task.entry_script, location.at("entry_script"))
        arguments = without_absent_parts(task.program_arguments or "", self._inputs)
        self.draft.put("program_arguments", arguments, location.at("program_arguments"))
        self._put_append_row_to(task.append_row_to, location.at("append_row_to"))

    def _with_current_names(self, raw: Mapping[str, Any], location: DocumentLocation) -> dict[str, Any]:
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
