"""The rest of the entry script's `sys.argv`: what the engine puts around the user's own arguments.

The order is the reference's (§1.2): the engine's options, then the user's, then the names of the inputs. Where a user's
option has the name of one of the engine's, the user's comes later, and so wins.
"""

from __future__ import annotations

import json

from parallelrun_core.spec.job import JobSpec


def engine_arguments(spec: JobSpec, output: str = "") -> list[str]:
    """The options that the engine puts before the user's arguments.

    Args:
        output: the folder of the job's output; the option is left out when this is empty.
    """
    options: dict[str, object] = {
        "client_sdk_version": "parallelrun",
        "scoring_module_name": spec.entry_script,
        "mini_batch_size": spec.mini_batch_size if spec.mini_batch_size is not None else 0,
        "error_threshold": spec.error_threshold,
        "output_action": spec.output_action,
        "logging_level": spec.logging_level,
        "run_invocation_timeout": _number(spec.run_invocation_timeout),
        "run_max_try": spec.run_max_try,
        "create_snapshot_at_runtime": True,
    }
    if spec.mini_batch_error_threshold != -1:
        options["allowed_failed_count"] = spec.mini_batch_error_threshold
    if spec.allowed_failed_percent != 100:
        options["allowed_failed_percent"] = _number(spec.allowed_failed_percent)
    if spec.writes_rows:
        options["append_row_file_name"] = spec.append_row_file_name
    if output:
        options["output"] = output
    if spec.max_concurrency_per_instance is not None:
        options["process_count_per_node"] = spec.max_concurrency_per_instance
    if spec.partition_keys:
        options["partition_keys"] = json.dumps(list(spec.partition_keys))
    return [text for name, value in options.items() for text in (f"--{name}", str(value))]


def input_arguments(spec: JobSpec) -> list[str]:
    """The names of the inputs that are cut into mini-batches, after the user's arguments."""
    argv: list[str] = []
    counts = {"input_ds": 0, "input_fds": 0}
    for name, data_input in spec.data_inputs():
        option = "input_ds" if data_input.type == "mltable" or data_input.transformations else "input_fds"
        argv += [f"--{option}_{counts[option]}", name]
        counts[option] += 1
    return argv


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
