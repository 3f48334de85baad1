"""Invocations of a batch endpoint: what one adds to the document of a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MODEL: Final = "model"
"""The name of the input that is the model."""
DATA: Final = "data"
"""The name of the data when an invocation gives only their place."""
SAME_IN_SPEC: Final = (
    "max_concurrency_per_instance", "mini_batch_size", "output_action", "error_threshold", "logging_level",
)  # fmt: skip
"""Settings of a deployment that a job spec has under the same names."""


def invoked(
    document: Mapping[str, Any],
    *,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A deployment with what an invocation gives: `read_job` makes a job of it.

    Args:
        inputs: by name: a path, a mapping with `path` and `type`, or of a pipeline also a number or text.
        outputs: by name; of a model, the one folder of its output.
        overrides: settings of the deployment for this invocation, such as `mini_batch_size` or `output_file_name`;
            `instance_count` is that of `resources`.
    """
    changed = {**document, "inputs": {**(document.get("inputs") or {}), **inputs}}
    if outputs:
        changed["outputs"] = {**(document.get("outputs") or {}), **outputs}
    settings = dict(overrides or {})
    if "instance_count" in settings:
        changed["resources"] = {**(document.get("resources") or {}), "instance_count": settings.pop("instance_count")}
    if settings:
        changed["settings"] = {**(document.get("settings") or {}), **settings}
    return changed
