"""The settings of a job as they count, and where each came from."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic.fields import FieldInfo

from parallelrun_core.answers.pictures import EffectiveSetting, EffectiveSettings
from parallelrun_core.described import descriptions
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.wire.masking import masked_spec

Group = Literal["job", "run", "parallel", "inputs", "outputs", "limits", "other"]
_GROUPS: Final[dict[Group, tuple[str, ...]]] = {
    "job": ("name", "description", "tags", "resume_from", "type", "experiment", "notify"),
    "run": (
        "code", "additional_includes", "command", "entry_script", "program_arguments", "environment_variables",
        "secrets", "environment", "logging_level", "profiling_module", "resource_monitor_interval",
        "steps", "loop", "force_rerun",
    ),
    "parallel": (
        "compute", "priority", "instance_count", "max_concurrency_per_instance", "max_concurrency", "mini_batch_size",
        "mini_batch_format", "string_dtype", "partition_keys", "rank_mini_batch_count", "mini_batches_in_flight",
        "in_flight", "workers_per_gpu", "gpus_per_worker", "speculative_execution", "look_ahead", "nice",
    ),
    "inputs": ("inputs", "input_data"),
    "outputs": (
        "outputs", "output", "output_action", "append_row_file_name", "append_row_to", "append_row_separator",
        "append_row_dataframe_header", "append_row_safe_output", "append_row_columns", "append_row_objects",
        "empty_output",
    ),
    "limits": (
        "run_invocation_timeout", "run_max_try", "lost_leases", "first_task_creation_timeout",
        "progress_update_timeout", "task_overhead_timeout", "error_threshold", "mini_batch_error_threshold",
        "allowed_failed_percent", "fail_fast", "continue_on_step_failure", "on_failure", "rate_limits", "budget",
    ),
}  # fmt: skip
_GROUP_OF: Final[dict[str, Group]] = {name: group for group, names in _GROUPS.items() for name in names}
_ORDER: Final = [*_GROUPS, "other"]


def effective_settings(record: JobRecord) -> EffectiveSettings:
    """All settings, by group."""
    model = PipelineSpec if record.is_pipeline else JobSpec
    masked, texts = masked_spec(record.spec), descriptions(model)
    items = [
        _setting(record, name, masked[name], field, texts.get(name, ""))
        for name, field in model.model_fields.items()
        if name in masked
    ]
    return EffectiveSettings(items=sorted(items, key=lambda item: _ORDER.index(item.group)))


def _setting(record: JobRecord, name: str, value: Any, field: FieldInfo, description: str) -> EffectiveSetting:
    default = None if field.is_required() else _plain(field.get_default(call_default_factory=True))
    origin: Literal["given", "default", "unknown"] = "default"
    if record.origins is not None:
        origin = "given" if name in record.origins else "default"
    elif record.spec.get(name) != default:
        origin = "unknown"
    return EffectiveSetting(
        name=name,
        value=value,
        default=default,
        origin=origin,
        given_at=(record.origins or {}).get(name, ""),
        description=description,
        group=_GROUP_OF.get(name, "other"),
    )


def _plain(value: Any) -> Any:
    """A default as JSON has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value
