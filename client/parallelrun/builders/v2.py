"""Azure ML's v2 SDK: `parallel_run_function`, `RunFunction` (reference §2.1), and constants such as `AssetTypes`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self

from parallelrun.builders.parts import Environment, Input, Output, without_none
from parallelrun.errors import InvalidInput

_LITERALS = ("number", "integer", "string", "boolean")


@dataclass(kw_only=True)
class RunFunction:
    """The task of a parallel job: what it runs."""

    entry_script: str
    code: str | None = None
    program_arguments: str | None = None
    environment: Environment | str | dict[str, Any] | None = None
    append_row_to: str | None = None

    def fields(self) -> dict[str, Any]:
        """The fields as in a job file."""
        environment = self.environment.document() if isinstance(self.environment, Environment) else self.environment
        return without_none({**asdict(self), "type": "run_function", "environment": environment})


@dataclass(slots=True, kw_only=True)
class Parallel:
    """A parallel job or step. Its settings can be changed; calling it with inputs returns a copy with these inputs."""

    task: RunFunction
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    experiment_name: str | None = None
    """No effect."""
    tags: dict[str, Any] | None = None
    properties: dict[str, Any] | None = None
    inputs: Any = field(default_factory=SimpleNamespace)
    outputs: Any = field(default_factory=SimpleNamespace)
    input_data: str | None = None
    mini_batch_size: str | None = None
    partition_keys: list[str] | None = None
    compute: str | None = None
    resources: Any = field(default_factory=SimpleNamespace)
    retry_settings: Any = None
    environment_variables: dict[str, str] | None = None
    logging_level: str | None = None
    max_concurrency_per_instance: int | None = None
    error_threshold: int | None = None
    mini_batch_error_threshold: int | None = None
    identity: dict[str, Any] | None = None
    is_deterministic: bool | None = None

    def __call__(self, **inputs: Any) -> Self:
        """A copy of the job with these inputs: paths, values, or Inputs.

        Raises:
            InvalidInput: there is no input of that name.
        """
        copy = deepcopy(self)
        for name, argument in inputs.items():
            declared = getattr(copy.inputs, name, None)
            if declared is None:
                has = ", ".join(vars(copy.inputs)) or "none"
                raise InvalidInput.at(f"/inputs/{name}", "there is no such input", f"it has: {has}")
            setattr(copy.inputs, name, _bound_input(declared, argument))
        return copy

    def set_resources(
        self,
        *,
        instance_count: int | None = None,
        instance_type: str | None = None,
        properties: dict[str, Any] | None = None,
        docker_args: str | None = None,
        shm_size: str | None = None,
    ) -> None:
        """Change these resources; the others stay as they are."""
        resources = {
            "instance_count": instance_count, "instance_type": instance_type, "properties": properties,
            "docker_args": docker_args, "shm_size": shm_size,
        }  # fmt: skip
        vars(self.resources).update(without_none(resources))

    def document(self) -> dict[str, Any]:
        """The content of a job file for the same job."""
        plain = {
            part.name: getattr(self, part.name)
            for part in fields(self)
            if part.name not in {"task", "inputs", "outputs", "resources", "retry_settings", "experiment_name"}
        }
        return without_none({
            "type": "parallel",
            **plain,
            "inputs": {name: _declaration(port) for name, port in vars(self.inputs).items()},
            "outputs": {name: port.fields() for name, port in vars(self.outputs).items()},
            "resources": without_none(vars(self.resources)) or None,
            "retry_settings": _mapping(self.retry_settings) or None,
            "task": self.task.fields(),
        })  # fmt: skip


def parallel_run_function(
    *,
    task: RunFunction,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Output] | None = None,
    instance_count: int | None = None,
    instance_type: str | None = None,
    docker_args: str | None = None,
    shm_size: str | None = None,
    retry_settings: Any = None,
    **settings: Any,
) -> Parallel:
    """A parallel job, with the arguments of `azure.ai.ml.parallel.parallel_run_function`.

    Args:
        inputs: Inputs by name. If all have paths, the job can be submitted; otherwise call it with paths first.
        settings: the other fields of `Parallel`.

    Raises:
        TypeError: there is no such field.
    """
    resources = {
        "instance_count": instance_count, "instance_type": instance_type, "docker_args": docker_args,
        "shm_size": shm_size,
    }  # fmt: skip
    return Parallel(
        task=task,
        inputs=SimpleNamespace(**(inputs or {})),
        outputs=SimpleNamespace(**(outputs or {})),
        resources=SimpleNamespace(**without_none(resources)),
        retry_settings=SimpleNamespace(**(_mapping(retry_settings) or {})),
        **settings,
    )


def _bound_input(declared: Any, argument: Any) -> Any:
    """A declared input with the value that the job is called with."""
    if not isinstance(declared, Input):
        return argument
    if isinstance(argument, Input):
        return replace(declared, **argument.fields())
    is_value = declared.type in _LITERALS or (declared.type is None and not isinstance(argument, str | Path))
    return replace(declared, default=argument) if is_value else replace(declared, path=str(argument))


def _declaration(port: Any) -> Any:
    if not isinstance(port, Input):
        return {"type": _type_of(port), "default": port}
    return {name: value for name, value in port.fields().items() if name != "name"}


def _type_of(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
    return "string"


def _mapping(value: Any) -> dict[str, Any] | None:
    if value is None or isinstance(value, dict):
        return value
    return without_none(vars(value))


class AssetTypes:
    """The types of inputs, outputs and models, as `azure.ai.ml.constants.AssetTypes` has them."""

    URI_FILE: Final = "uri_file"
    URI_FOLDER: Final = "uri_folder"
    MLTABLE: Final = "mltable"
    MLFLOW_MODEL: Final = "mlflow_model"
    CUSTOM_MODEL: Final = "custom_model"
    TRITON_MODEL: Final = "triton_model"


class InputOutputModes:
    """The ways in which data get to a job, as `azure.ai.ml.constants.InputOutputModes` has them."""

    RO_MOUNT: Final = "ro_mount"
    RW_MOUNT: Final = "rw_mount"
    MOUNT: Final = "mount"
    DOWNLOAD: Final = "download"
    UPLOAD: Final = "upload"
    DIRECT: Final = "direct"
    EVAL_MOUNT: Final = "eval_mount"
    EVAL_DOWNLOAD: Final = "eval_download"
