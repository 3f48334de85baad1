"""A job with a shell command in place of an entry script: what follows for its other fields, and the shell's text.

Such a job is one mini-batch without data, for one worker, and returns no rows. So whoever schedules, leases, guards and
retries mini-batches needs to know nothing of commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from parallelrun_core.spec.expressions import name_of_target, with_literals, without_absent_parts
from parallelrun_core.spec.fields import Input, Output, ValueInput
from parallelrun_core.spec.problems import at
from parallelrun_core.spec.shell_words import Variable, path_or_variable, with_values

MAX_SECONDS: Final = 259_200
SETTLED: Final[Mapping[str, Any]] = {
    "rank_mini_batch_count": 1,
    "output_action": "summary_only",
    "instance_count": 1,
    "max_concurrency_per_instance": 1,
    "mini_batch_error_threshold": 0,
}
"""Fields of a job spec that have this value with a command, and no other."""
DEFAULTS: Final[Mapping[str, Any]] = {
    "run_invocation_timeout": MAX_SECONDS,
    "run_max_try": 1,
}
"""Fields of a job spec whose default is this with a command."""
_OF_SCRIPTS: Final = (
    "program_arguments", "input_data", "mini_batch_size", "mini_batch_format", "string_dtype", "partition_keys",
    "append_row_file_name", "append_row_to", "append_row_separator", "append_row_dataframe_header",
    "append_row_safe_output", "append_row_columns",
    "append_row_objects", "empty_output", "error_threshold", "allowed_failed_percent", "mini_batches_in_flight",
    "in_flight", "rate_limits", "budget", "speculative_execution", "look_ahead", "logging_level", "profiling_module",
    "resume_from",
)  # fmt: skip
"""Fields that mean nothing with a command."""
_INPUT: Final = "AZURE_ML_INPUT_"
_OUTPUT: Final = "AZURE_ML_OUTPUT_"
_NOT_READ: Final = "\0"
"""What a dollar sign is meanwhile that begins no expression, as in a literal: neither texts nor literals have it."""


def with_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """A job spec with a command, and what follows from that for the fields that it doesn't give."""
    settings = {name: value for name, value in document.items() if value is not None or name not in SETTLED}
    return {**DEFAULTS, **SETTLED, **settings}


def check_fields(spec: BaseModel) -> None:
    """Check that a job spec with a command has no fields that contradict it, or that only an entry script needs.

    Raises:
        PydanticCustomError: it has one.
    """
    for name, value in SETTLED.items():
        if getattr(spec, name) != value:
            raise at(name, f"must be {value!r}, or left out: a command runs once, by one worker, and returns no rows")
    for name in _OF_SCRIPTS:
        if _is_set(spec, name):
            raise at(name, "it is for an entry script and means nothing with a command; leave it out")


def _is_set(spec: BaseModel, name: str) -> bool:
    return bool(getattr(spec, name) != type(spec).model_fields[name].default)


def as_written(spec: BaseModel, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a job spec with a command: without those that follow from it, and with those whose default is
    another one with a command, as defaults may have been left out."""
    left_out = (*SETTLED, "entry_script", *(name for name in _OF_SCRIPTS if not _is_set(spec, name)))
    written = {name: value for name, value in fields.items() if name not in left_out}
    return written | {name: getattr(spec, name) for name in DEFAULTS}


def shell_text(
    text: str, inputs: Mapping[str, Input | ValueInput], outputs: Mapping[str, Output], paths: Mapping[str, str],
    secrets: Mapping[str, object],
) -> str:  # fmt: skip
    """A command for a shell, without its `$[[…]]` parts for absent inputs, and with the values of all expressions.

    A literal is inserted as it is (reference §2.2), so it may be several words. A path stays one word, and is never
    read as anything else: where one of its characters means something to a shell, the variable with it is
    inserted instead (`command_variables`). So it is with a secret, whose value is then in no list of processes.

    Args:
        paths: of named outputs, which depend on the job's folder; one that is missing has its own.

    Raises:
        ValueError: an expression can't be resolved, or there is a path where it can't be one word.
    """

    def value_of(kind: str, name: str) -> str | Variable:
        if kind == "secrets":
            return Variable(name_of_target(kind, name, secrets))
        named: Mapping[str, object] = inputs if kind == "inputs" else outputs
        key = name_of_target(kind, name, named)
        if kind == "outputs":
            output_name = outputs[key].path or outputs[key].file_name or key
            return path_or_variable(paths.get(key) or outputs[key].path, f"{_OUTPUT}{key}", output_name)
        job_input = inputs[key]
        return (
            str(job_input.value)
            if isinstance(job_input, ValueInput)
            else path_or_variable(job_input.path, f"{_INPUT}{key}")
        )

    literals = {name: str(job_input.value) for name, job_input in inputs.items() if isinstance(job_input, ValueInput)}
    head, end, tail = without_absent_parts(text, inputs).rpartition("}}")
    text = with_literals(head + end, literals, _NOT_READ) + tail.replace("${{", _NOT_READ + "{{")
    return with_values(text, value_of).replace(_NOT_READ, "$")


def command_variables(inputs: Mapping[str, Input | ValueInput], paths: Mapping[str, str]) -> dict[str, str]:
    """The environment variables in which a command finds its inputs and outputs.

    Args:
        paths: of named outputs.
    """
    values = {
        name: str(job_input.value) if isinstance(job_input, ValueInput) else job_input.path
        for name, job_input in inputs.items()
    }
    return {f"{_INPUT}{name}": value for name, value in values.items()} | {
        f"{_OUTPUT}{name}": path for name, path in paths.items()
    }
