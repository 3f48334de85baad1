"""Which of Azure's forms a document has. Nothing is read here: a process that sees none of them imports no reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONFIG: Final = "parallel_run_config"
"""What only documents of v1 have."""
_PIPELINE_ONLY: Final = ("component", "job_definition")


def is_v1(document: Mapping[Any, Any]) -> bool:
    """Whether this is a v1 document."""
    return CONFIG in document


def is_v2(document: Mapping[Any, Any]) -> bool:
    """Whether this is a v2 document: it has a type, or steps."""
    return isinstance(document.get("type"), str) or "jobs" in document


def is_deployment(document: Mapping[Any, Any]) -> bool:
    """Whether this is a deployment, or an endpoint, which `read_deployment` refuses with the reason."""
    schema = str(document.get("$schema", "")).lower()
    if "endpoint_name" in document or "auth_mode" in document or str(document.get("type", "")).lower() == "model":
        return True
    return schema.endswith(("deployment.schema.json", "endpoint.schema.json"))


def is_of_pipeline(document: Mapping[str, Any]) -> bool:
    """Whether a deployment is that of a pipeline."""
    return str(document.get("type", "")).lower() == "pipeline" or any(name in document for name in _PIPELINE_ONLY)
