"""The fields of v2 documents (reference §1.3, §2.1), checked more strictly than Azure's client does (§1.6)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, field_validator

from parallelrun_core.azure.part import DataAdditions, DocumentPart, Label, LabelledJob
from parallelrun_core.spec.fields import checked_file_name, checked_size
from parallelrun_core.spec.job_checks import in_order

_INT_MAX = 2**31 - 1

Threshold = Annotated[StrictInt, Field(ge=-1, le=_INT_MAX)]
Count = Annotated[StrictInt, Field(ge=1, le=_INT_MAX)]
FileName = Annotated[StrictStr, AfterValidator(checked_file_name)]
LITERAL_TYPES = ("number", "integer", "string", "boolean")
MODEL_TYPES = ("custom_model", "mlflow_model", "triton_model")
DataType = Literal[
    "uri_folder", "uri_file", "mltable", "custom_model", "mlflow_model", "triton_model", "number", "integer", "string",
    "boolean",
]  # fmt: skip
"""The type of an input or output."""
TYPES = get_args(DataType)


class V2RetrySettings(DocumentPart):
    """Tries and their timeout."""

    max_retries: Annotated[StrictInt, Field(ge=0, le=_INT_MAX)] | None = None
    timeout: Annotated[StrictInt, Field(gt=0, le=259_200)] | None = None


class Resources(DocumentPart):
    """The number of machines; their kind concerns Azure ML alone."""

    instance_count: Count | None = None
    instance_type: Any = None
    locations: list[str] | None = None
    properties: dict[str, Any] | None = None
    shm_size: str | None = None
    docker_args: Any = None
    max_instance_count: StrictInt | None = None


class Task(DocumentPart):
    """The script and its environment."""

    type: StrictStr
    code: StrictStr | None = None
    entry_script: StrictStr
    program_arguments: StrictStr | None = None
    model: StrictStr | None = None
    environment: Any
    append_row_to: StrictStr | None = None


class Identity(DocumentPart):
    """The identity under which the job runs in Azure ML."""

    type: Literal["managed", "managed_identity", "user_identity", "aml_token"]
    client_id: Any = None
    object_id: Any = None
    resource_id: Any = None
    msi_resource_id: Any = None


class V2Parallel(LabelledJob):
    """The fields that a job by itself, a step and a component share."""

    experiment_name: Label = None
    input_data: Any = None
    mini_batch_size: StrictStr | None = None
    partition_keys: list[StrictStr] | None = None
    resources: dict[str, Any] | None = None
    max_concurrency_per_instance: Count | None = None
    error_threshold: Threshold | None = None
    mini_batch_error_threshold: Threshold | None = None
    logging_level: Literal["DEBUG", "INFO", "WARNING"] | None = None
    retry_settings: dict[str, Any] | None = None
    environment_variables: dict[str, StrictStr] | None = None
    is_deterministic: StrictBool | None = None
    task: dict[str, Any] | None = None

    _keys_in_order = field_validator("partition_keys", mode="before")(in_order)

    _is_a_size = field_validator("mini_batch_size")(checked_size)


class V2Step(V2Parallel):
    component: Any = None


class V2Component(V2Parallel):
    """A parallel component: a step that declares its inputs and outputs."""

    instance_count: Count | None = None


class V2Settings(DocumentPart):
    default_compute: StrictStr | None = None
    default_datastore: StrictStr | None = None
    continue_on_step_failure: StrictBool | None = None
    continue_run_on_failed_optional_input: StrictBool | None = None
    force_rerun: StrictBool | None = None
    on_init: StrictStr | None = None
    on_finalize: StrictStr | None = None


class V2Pipeline(LabelledJob):
    experiment_name: Label = None
    settings: dict[str, Any] | None = None
    jobs: dict[str, Any] | None = None
    component: Any = None
    is_deterministic: StrictBool | None = None


class GivenInput(DataAdditions):
    """An input, given with its path or declared by a component."""

    type: DataType | None = None
    path: StrictStr | None = None
    mode: Literal["ro_mount", "download", "direct", "eval_mount", "eval_download"] | None = None
    path_on_compute: StrictStr | None = None
    datastore: StrictStr | None = None
    """The datastore that Azure ML's client uploads a local path to."""
    optional: bool = False
    default: Any = None
    value: Any = None
    min: float | None = None
    max: float | None = None
    enum: list[Any] | None = None
    description: Label = None

    @property
    def is_literal(self) -> bool:
        return self.type in LITERAL_TYPES or (self.type is None and self.value is not None)


class GivenOutput(DocumentPart):
    """An output, given with its path or declared by a component."""

    type: DataType | None = None
    path: StrictStr | None = None
    mode: Literal["rw_mount", "mount", "upload", "direct"] | None = None
    is_control: bool | None = None
    """True if a condition reads it; any output of type boolean may be read."""
    early_available: bool | None = None
    name: Label = None
    version: Label = None
    description: Label = None
