"""Checks of a job's fields, each against others."""

from __future__ import annotations

from typing import Any

from parallelrun_core.names.assets import INCLUDES, STORED_ALREADY, stored_code
from parallelrun_core.spec import command as commands
from parallelrun_core.spec.expressions import same_name
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.problems import at
from parallelrun_core.storage.location import is_url

Job = Any
"""A `JobSpec`, whose module imports this one."""


def numbers_as_text(variables: object) -> object:
    """Return environment variables with texts in the place of numbers; anything else as it is."""
    if not isinstance(variables, dict):
        return variables
    return {
        name: str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in variables.items()
    }


def in_order(values: object) -> object:
    """Return values unchanged whose order counts.

    Raises:
        ValueError: they are a set, which has none.
    """
    if isinstance(values, set | frozenset):
        raise ValueError(f"must be a list, as a set has no order: {sorted(map(str, values))}")
    return values


def checked_variables(variables: dict[str, str]) -> dict[str, str]:
    """Return variables or tags unchanged.

    Raises:
        ValueError: a process can't have a variable of such a name or value.
    """
    for name, text in variables.items():
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(f"{name!r} is not a valid name, or its value has a NUL")
    return variables


def check_consistency(spec: Job) -> None:
    """Check fields of a job against each other, and complete the names of inputs and outputs in them.

    Raises:
        PydanticCustomError: at the field that is wrong.
    """
    _check_input_data(spec)
    _check_partition_keys(spec)
    _check_in_flight(spec)
    if spec.workers_per_gpu and spec.gpus_per_worker:
        raise at("gpus_per_worker", "set either gpus_per_worker or workers_per_gpu, not both")
    _check_outputs(spec)
    if spec.append_row_to:
        _check_append_row_to(spec)
    if spec.speculative_execution and not spec.writes_rows:
        raise at("speculative_execution", "a summary_only script could then write its own outputs twice")
    _check_secrets(spec)
    if spec.additional_includes and stored_code(spec.code):
        raise at(INCLUDES, "; ".join(STORED_ALREADY))
    if spec.command and spec.entry_script:
        raise at("entry_script", "set either entry_script or command, not both")
    if spec.command:
        commands.check_fields(spec)
    for field, resolved in (("program_arguments", spec.argv), ("command", spec.shell_command)):
        try:
            resolved(dict.fromkeys(spec.outputs, "/"))
        except ValueError as error:
            raise at(field, str(error)) from error


def _check_in_flight(spec: Job) -> None:
    if spec.mini_batches_in_flight == 1:
        if spec.in_flight != "async":
            raise at("mini_batches_in_flight", f"must be more than 1, or auto, with in_flight: {spec.in_flight}")
        return
    if spec.profiling_module:
        raise at("profiling_module", "can't tell apart the mini-batches that run at once; run one at a time for it")
    for name, output in spec.outputs.items():
        if is_url(output.path):
            raise at(f"outputs.{name}", "files of several mini-batches in flight can't be told apart: return rows")


def _check_input_data(spec: Job) -> None:
    paths = [name for name, job_input in spec.inputs.items() if isinstance(job_input, Input)]
    names = ", ".join(paths)
    if not spec.input_data and spec.rank_mini_batch_count == 0:
        if len(paths) != 1:
            form = (
                "; the fields of an input are below its name, as in inputs: {data: {path: …}}"
                if "path" in paths
                else ""
            )
            raise at("input_data", f"must name the inputs that are cut into mini-batches, among {names}{form}")
        object.__setattr__(spec, "input_data", tuple(paths))
    keys = [same_name(name, spec.inputs) for name in spec.input_data]
    for name, key in zip(spec.input_data, keys, strict=True):
        if key is None:
            raise at("input_data", f"{name!r} is not one of the inputs ({names})")
        if key not in paths:
            raise at("input_data", f"{name!r} is a value; only files or tables ({names}) are cut into mini-batches")
    if len(set(keys)) < len(keys):
        raise at("input_data", "must not name an input twice")
    object.__setattr__(spec, "input_data", tuple(keys))


def _check_partition_keys(spec: Job) -> None:
    if spec.partition_keys and spec.mini_batch_size is not None:
        raise at("partition_keys", "set either partition_keys or mini_batch_size, not both")
    if spec.partition_keys and spec.on_failure == "isolate":
        raise at("on_failure", "with partition_keys, a mini-batch is a whole, so its items can't be run apart")
    if len(set(spec.partition_keys)) < len(spec.partition_keys) or not all(spec.partition_keys):
        raise at("partition_keys", "keys must be non-empty and distinct")


def _check_outputs(spec: Job) -> None:
    used_names = (
        {spec.append_row_file_name: "append_row_file_name"} if spec.writes_rows and not spec.append_row_to else {}
    )
    for name, output in spec.outputs.items():
        file_name = "" if output.path else output.file_name or name
        if file_name in used_names:
            raise at(f"outputs/{name}", f"{file_name!r} is also the name of {used_names[file_name]}")
        used_names |= {file_name: f"the output {name}"} if file_name else {}


def _check_secrets(spec: Job) -> None:
    if both := spec.secrets.keys() & spec.environment_variables.keys():
        raise at("secrets", f"{min(both)!r} is also one of environment_variables")
    try:
        spec.variables(dict.fromkeys(spec.secrets, ""))
    except ValueError as error:
        raise at("environment_variables", str(error)) from error


def _check_append_row_to(spec: Job) -> None:
    key = same_name(spec.append_row_to, spec.outputs)
    if key is None:
        names = ", ".join(spec.outputs) or "there is none"
        raise at("append_row_to", f"{spec.append_row_to!r} is not one of the outputs ({names})")
    if not spec.writes_rows:
        raise at("append_row_to", "with output_action summary_only there are no rows to write")
    object.__setattr__(spec, "append_row_to", key)
