"""`JobSpec`: all settings of one parallel job.

Names and defaults are those of Azure ML (`run_max_try`, `error_threshold`, …). Load one with
`JobSpec.parse`, which reports every wrong field at once: where, why, and what was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import INCLUDES, stored_code
from parallelrun_core.names.computes import plain_name
from parallelrun_core.problems import validated
from parallelrun_core.spec import command as commands
from parallelrun_core.spec.environment import Environment
from parallelrun_core.spec.expressions import bound_name, name_of_target
from parallelrun_core.spec.fields import (
    AnyInput,
    Budget,
    Input,
    Labels,
    MiniBatchSize,
    MiniBatchSizeField,
    Output,
    by_name,
    checked_file_name,
    checked_path,
    plain_input,
    plain_outputs,
    without_nul,
)
from parallelrun_core.spec.job_checks import check_consistency, checked_variables, in_order, numbers_as_text
from parallelrun_core.spec.notify import Notified
from parallelrun_core.spec.problems import JOB_HINTS, problem_of
from parallelrun_core.spec.secrets import Secret, named_secrets, with_secrets
from parallelrun_core.spec.user_arguments import user_arguments
from parallelrun_core.storage.supported import absolute_path, local_path

Seconds = Annotated[float, Field(gt=0, le=commands.MAX_SECONDS)]
Threshold = Annotated[int, Field(ge=-1)]
MOST_IN_FLIGHT: Final = 1024
"""Mini-batches that one worker may run at once."""
Moved = TypeVar("Moved", Input, Output)


class JobSpec(Notified, Labels):
    """A parallel job."""

    code: str = Field(default="", max_length=4096)
    """Folder of the entry script; copied when the job is submitted. Left out when the code is sent along as a zip."""
    additional_includes: tuple[str, ...] = Field(default=(), max_length=1000)
    """Files and folders that are copied beside those of `code`; `x.zip` may stand for a zip of the folder `x`."""
    command: str = Field(default="", max_length=65_536)
    """A shell command that runs once, in a copy of `code`, in place of an entry script."""
    entry_script: str = Field(default="", max_length=1024, validate_default=True)
    """File below `code` with `run(mini_batch)`, perhaps `init()`, `shutdown()`; required without `command`."""
    program_arguments: str = Field(default="", max_length=65_536)
    """Your part of `sys.argv`, quoted as for a shell, with `${{inputs.X}}`, `${{outputs.X}}`, `${{secrets.X}}`."""
    environment_variables: dict[str, str] = Field(default_factory=dict)
    """The environment variables of the workers, masked in whatever ParallelRun reports; `${{secrets.X}}` works."""
    secrets: dict[str, Secret] = Field(default_factory=dict)
    """The place where a node finds each: `{env: NAME}` or `{file: PATH}`. They become variables of the workers."""
    environment: Environment = Environment()
    """The Python of the workers, built from a conda file or requirements; the agent's own when empty."""

    rank_mini_batch_count: int = Field(default=0, ge=0, le=100_000_000)
    """Number of mini-batches without data, whatever the inputs are; 0: the inputs are cut."""
    inputs: dict[str, AnyInput] = Field(default_factory=dict, validate_default=True)
    """By name; a plain string is short for `{path: …}`, a plain number or truth value for `{value: …}`."""
    input_data: tuple[str, ...] = ()
    """Names of the inputs that are cut into mini-batches, one after another. Not needed when one input has a path."""
    mini_batch_size: MiniBatchSizeField = None
    """Files for each `run()`, or `auto`: 10 s of them. Of a table, `500kb` or `rows:500`. Not set: 10 or 1 MiB."""
    mini_batch_format: Literal["pandas", "arrow", "polars", "pandas_pyarrow"] = "pandas"
    """The form of a table's rows for `run()`: pandas, a pyarrow table, Polars, or pandas with types of Arrow."""
    string_dtype: Literal["", "pandas", "object"] = ""
    """The dtype of texts in tables for pandas: `pandas`, which that library itself makes, or `object`, with `None`."""
    partition_keys: tuple[str, ...] = ()
    """The keys of which each combination of values is a mini-batch; not together with `mini_batch_size`."""

    outputs: dict[str, Output] = Field(default_factory=dict)
    """Folders and files that the script writes itself, by name; a plain string is short for `{path: …}`."""
    output_action: Literal["append_row", "summary_only"] = "append_row"
    """`append_row` gathers what `run()` returns in one file; `summary_only` only counts it."""
    append_row_file_name: str = Field(default="parallel_run_step.txt", min_length=1, max_length=255)
    """Name of the output file."""
    append_row_to: str = ""
    """The output that gets the rows: that file, or `append_row_file_name` in that folder; `output` when empty."""
    append_row_separator: str = Field(default=" ", min_length=1, max_length=1)
    """Between the columns of a DataFrame."""
    append_row_dataframe_header: bool = False
    """Write the names of the columns once, at the top of the output file."""
    append_row_safe_output: bool = False
    """Write line breaks inside rows of text as `\\n`, so that each row is one line."""
    append_row_columns: Literal["", "name", "position"] = ""
    """Columns of the DataFrames of all mini-batches are put together by their names, or as they come."""
    append_row_objects: Literal["", "refuse", "text"] = ""
    """Rows whose text would be but a type and an address, such as generators, are refused, or written as that text."""
    empty_output: Literal["", "complete", "fail"] = ""
    """`complete`: a job whose `run()` returns no row at all completes, with an empty output; `fail`: it fails."""
    output: str = Field(default="", max_length=4096)
    """Folder for the outputs; the job's own folder when empty."""

    compute: str = Field(default="", max_length=1024)
    """The compute whose nodes run the job; the default one when empty. Without effect while no compute is defined."""
    instance_count: int | None = Field(default=None, ge=1, le=100_000)
    """Nodes that the job works on, the freest ones at first; when not set, every live node, now and later."""
    max_concurrency_per_instance: int | None = Field(default=None, ge=1, le=4096)
    """Workers on each node; when not set, one for each slot (by default, each CPU), but 1 on a node with GPUs."""

    priority: Literal["low", "normal", "high"] = "normal"
    """Its part of the slots among its owner's jobs: `high` has three times as many as `normal`, and that as `low`."""

    workers_per_gpu: int | None = Field(default=None, ge=1, le=64)
    """Workers that share a GPU; when not set, each has one of its own. On a node with GPUs, as many work as fit."""
    gpus_per_worker: int | None = Field(default=None, ge=1, le=64)
    """GPUs that each worker has for itself; when not set, one. On a node with GPUs, as many work as fit."""

    mini_batches_in_flight: int | Literal["auto"] = 1
    """Mini-batches that a worker runs at once when `run()` waits for something; `auto`: while throughput grows."""
    in_flight: Literal["async", "threads", "streaming"] = "async"
    """The way in which it does: `async def run`, an ordinary `run()` in threads, or a script with `enqueue()`."""

    rate_limits: tuple[str, ...] = Field(default=(), max_length=32)
    """Names of the cluster's limits that `parallelrun.script.limit()` may ask permits of."""

    budget: Budget | None = None
    """Cost at which no more mini-batches are begun, by what scripts report with `parallelrun.script.report_cost()`."""

    run_invocation_timeout: Seconds = 60
    """Seconds that one `run()` may take."""
    run_max_try: int = Field(default=3, ge=1, le=2**31)
    """Tries a mini-batch has before it counts as failed (Azure ML's `max_retries` + 1)."""
    on_failure: Literal["", "isolate", "mini_batch"] = ""
    """`isolate`: items of a mini-batch that fails for good are run apart, and only those fail that still do."""
    fail_fast: bool | None = None
    """True: the job fails when nothing has succeeded, and mini-batches from all over the input have failed alike."""
    lost_leases: int = Field(default=10, ge=0, le=1_000_000)
    """Times that a mini-batch may be lost with its node before it counts as failed."""
    first_task_creation_timeout: Seconds = 600
    """Seconds in which the job could have workers before one of them runs its first mini-batch."""
    progress_update_timeout: Seconds | None = None
    """Seconds without any progress after which the job fails. By default long enough for every try of a mini-batch."""

    task_overhead_timeout: Seconds = 600
    """Seconds to load a mini-batch and hand it to `run()`."""

    error_threshold: Threshold = -1
    """The job fails when more items than this have failed; -1: never."""
    mini_batch_error_threshold: Threshold = -1
    """The job fails when more mini-batches than this have failed; -1: never."""
    allowed_failed_percent: float = Field(default=100, ge=0, le=100)
    """The job fails when a greater percentage of its mini-batches has failed; checked once all are scheduled."""

    speculative_execution: bool = False
    """True: at the job's tail, a mini-batch that takes unusually long is delivered twice; the first result counts."""
    look_ahead: bool = True
    """Hand a worker several mini-batches at once while they are short."""
    logging_level: Literal["DEBUG", "INFO", "WARNING"] = "INFO"
    """Level of the entry script's root logger."""
    resource_monitor_interval: int = Field(default=600, ge=0, le=2**31 - 1)
    """Seconds between two measurements of a node's CPU, memory, disk and network; 0: none."""
    profiling_module: Literal["", "cProfile", "profile"] = ""
    """Profile the workers, into `logs/sys/node/<node>/<process>.profile`."""
    nice: int | None = Field(default=None, ge=-20, le=19)
    """Niceness of the workers; unchanged when not set."""
    copy_logs_to_parent: bool = False
    """Copies logs to the job of a pipeline; has no effect on a job by itself."""
    metrics_name_prefix: str = Field(default="", max_length=256)
    """Prefix of the names of metrics in a pipeline; has no effect on a job by itself."""
    push_metrics_to_parent: bool = False
    """Passes metrics to the job of a pipeline; has no effect on a job by itself."""
    resume_from: str = Field(default="", max_length=128)
    """Id of a job that has ended: its finished mini-batches are taken over, and only the rest is run."""

    @classmethod
    def parse(cls, document: object) -> Self:
        """Check a job spec.

        Raises:
            InvalidInput: with one problem for each wrong field.
        """
        if not isinstance(document, dict):
            raise InvalidInput.at("", "a job spec is a mapping of settings", "see docs/job-spec.md")
        return validated(cls, document, problem_of=partial(problem_of, hints=JOB_HINTS))

    @model_validator(mode="before")
    @classmethod
    def _of_a_command(cls, document: object) -> object:
        if isinstance(document, dict) and document.get("command"):
            return commands.with_settings(document)
        return document

    @model_serializer(mode="wrap")
    def _with_settings_of_a_command(self, serialized: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialized(self)
        return commands.as_written(self, fields) if self.command else fields

    @field_validator("entry_script")
    @classmethod
    def _something_to_run(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.data.get("command") == "":
            raise PydanticCustomError("missing", "", {"hint": "or `command`, a shell command"})
        return value

    @field_validator("inputs", mode="before")
    @classmethod
    def _plain_inputs(cls, value: object, info: ValidationInfo) -> object:
        if value == {} and not info.data.get("rank_mini_batch_count"):
            raise ValueError("at least 1 input is required: a folder, a file or a pattern")
        if isinstance(value, str):
            value = {"data": value}
        value = by_name(value, "input")
        return {name: plain_input(entry) for name, entry in value.items()} if isinstance(value, dict) else value

    _plain_outputs = field_validator("outputs", mode="before")(plain_outputs)

    _named_secrets = field_validator("secrets", mode="before")(named_secrets)

    @field_validator("input_data", "partition_keys", mode="before")
    @classmethod
    def _one_or_many(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and info.field_name == "input_data":
            value = [value]
        if not isinstance(value, list | tuple):
            return in_order(value)
        return tuple(bound_name(name, "inputs") if isinstance(name, str) else name for name in value)

    @field_validator("mini_batches_in_flight")
    @classmethod
    def _not_too_many_in_flight(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 1 <= value <= MOST_IN_FLIGHT:
            raise ValueError(f"must be from 1 to {MOST_IN_FLIGHT:,}, or auto")
        return value

    @field_validator("append_row_to", mode="before")
    @classmethod
    def _plain_output(cls, value: object) -> object:
        return bound_name(value, "outputs") if isinstance(value, str) else value

    _numbers_as_text = field_validator("environment_variables", mode="before")(numbers_as_text)

    _valid_names = field_validator("environment_variables", "tags", mode="after")(checked_variables)

    _plain_file_name = field_validator("append_row_file_name")(checked_file_name)

    @field_validator("append_row_separator")
    @classmethod
    def _separates(cls, value: str) -> str:
        if value in "\"'\r\n\0":
            raise ValueError("must not be a quote or a line break")
        return value

    @field_validator("code", "output")
    @classmethod
    def _reachable(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name == "code":
            return value if stored_code(value) else local_path(without_nul(value), "code")
        return checked_path(value, is_written=True)

    @field_validator("additional_includes")
    @classmethod
    def _local(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(local_path(without_nul(each), INCLUDES) for each in value)

    _compute_by_its_name = field_validator("compute")(plain_name)

    _no_nul_inside = field_validator("entry_script", "command", "program_arguments")(without_nul)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_consistency(self)
        return self

    @property
    def gpus_of_worker(self) -> Fraction | None:
        """Return how many GPUs each worker has, or which part of one; None: the job doesn't say."""
        if self.gpus_per_worker:
            return Fraction(self.gpus_per_worker)
        return Fraction(1, self.workers_per_gpu) if self.workers_per_gpu else None

    @property
    def writes_rows(self) -> bool:
        return self.output_action == "append_row"

    @property
    def reads_tables(self) -> bool:
        """Return whether `run()` gets rows, as far as the job says how its inputs are read."""
        return any(each.type == "mltable" or each.transformations for _, each in self.data_inputs())

    @property
    def has_threshold(self) -> bool:
        """Return whether the job says how much of it may fail."""
        return max(self.error_threshold, self.mini_batch_error_threshold) >= 0 or self.allowed_failed_percent < 100

    @property
    def contract(self) -> Literal["run", "awaited", "streaming"]:
        """Return which functions of the entry script a worker calls, and how."""
        if self.in_flight == "streaming":
            return "streaming"
        return "awaited" if self.mini_batches_in_flight != 1 and self.in_flight == "async" else "run"

    @property
    def size(self) -> MiniBatchSize:
        """The size of what one `run()` call gets."""
        return MiniBatchSize.parse(self.mini_batch_size)

    def data_inputs(self) -> list[tuple[str, Input]]:
        """The inputs that are cut into mini-batches, in order; none when mini-batches carry no data."""
        if self.rank_mini_batch_count:
            return []
        return [(name, job_input) for name in self.input_data if isinstance(job_input := self.inputs[name], Input)]

    def input_paths(self) -> Iterator[tuple[str, Input]]:
        """Every input that has a path."""
        return ((name, job_input) for name, job_input in self.inputs.items() if isinstance(job_input, Input))

    def data_paths(self) -> list[str]:
        """The paths that are cut into mini-batches, in order."""
        return [job_input.path for _, job_input in self.data_inputs()]

    def argv(self, outputs: Mapping[str, str] | None = None, secrets: Mapping[str, str] | None = None) -> list[str]:
        """The user's own arguments, split as a shell would, with the values of all expressions.

        Args:
            outputs: the path of each of `outputs`; by default, its own path.
            secrets: the value of each of `secrets`; by default, nothing.
        """
        return user_arguments(
            self.program_arguments,
            self.inputs,
            self.outputs,
            outputs or {},
            lambda name: (secrets or {}).get(name_of_target("secrets", name, self.secrets), ""),
        )

    def shell_command(self, outputs: Mapping[str, str] | None = None) -> str:
        """The command as a shell gets it, with the values of all expressions; empty if there is an entry script.

        Args:
            outputs: the path of each of `outputs`; by default, its own path.
        """
        return commands.shell_text(self.command, self.inputs, self.outputs, outputs or {}, self.secrets)

    def variables(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """The environment variables that the job asks for, with the values of its secrets, which are among them."""
        items = self.environment_variables.items()
        return {**secrets, **{name: with_secrets(text, secrets, secrets.__getitem__) for name, text in items}}

    def relative_to(self, folder: Path) -> Self:
        """Return the job with paths relative to `folder`, that of the job file, made absolute."""
        return self.model_copy(
            update={
                "code": _absolute(folder, self.code),
                INCLUDES: tuple(_absolute(folder, each) for each in self.additional_includes),
                "environment": self.environment.relative_to(folder),
                "output": _absolute(folder, self.output),
                "inputs": self.inputs | {name: _moved(folder, output) for name, output in self.input_paths()},
                "outputs": {name: _moved(folder, output) for name, output in self.outputs.items()},
            }
        )


def _moved(folder: Path, movable: Moved) -> Moved:
    return movable.model_copy(update={"path": _absolute(folder, movable.path)})


def _absolute(folder: Path, path: str) -> str:
    try:
        return absolute_path(path, folder)
    except ValueError as error:
        raise InvalidInput.at("", str(error)) from error
