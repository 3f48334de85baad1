"""Forms of Azure's documents: tells which of them a document has. Nothing is read here: a process that sees none of
them imports no reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

CONFIG: Final = "parallel_run_config"
"""What only documents of v1 have."""
_TYPED_SCHEMA: Final = re.compile(
    r"(command|parallel|pipeline|sweep|spark|autoML)(?:Job|Component)\.schema\.json$", re.IGNORECASE
)
_COMMAND_ONLY: Final = (
    "display_name", "experiment_name", "identity", "distribution", "services", "limits", "queue_settings",
)  # fmt: skip
_STEP_TYPES: Final = frozenset(
    {"parallel", "command", "pipeline", "if_else", "parallel_for", "do_while", "sweep", "spark"}
)
_OF_NODES: Final = frozenset({"source", "type", "use_variants"})
_PIPELINE_ONLY: Final = ("component", "job_definition")


def is_v1(document: Mapping[Any, Any]) -> bool:
    return CONFIG in document


def with_its_type(document: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A document with the type that its `$schema` names, unless it has one: command jobs are mostly written so. Without
    either, a command is one of Azure ML's if it has a field, or an environment with a name, that ours never has."""
    if document.get("type") is not None:
        return document
    schema = _TYPED_SCHEMA.search(str(document.get("$schema", "")))
    if schema is not None:
        return {**document, "type": schema[1].lower()}
    named = isinstance(document.get("environment"), str) or any(name in document for name in _COMMAND_ONLY)
    return {**document, "type": "command"} if "command" in document and named else document


def is_job_by_itself(document: Mapping[Any, Any]) -> bool:
    """Return whether a document of type command or parallel says that it is a job, and no component."""
    schema = str(document.get("$schema", "")).lower()
    return schema.endswith(("commandjob.schema.json", "paralleljob.schema.json"))


def is_v2(document: Mapping[Any, Any]) -> bool:
    """Return whether this is a v2 document: it has a type, or steps."""
    return isinstance(document.get("type"), str) or "jobs" in document


def is_deployment(document: Mapping[Any, Any]) -> bool:
    """Return whether this is a deployment, or an endpoint, which `read_deployment` refuses with the reason."""
    schema = str(document.get("$schema", "")).lower()
    if "endpoint_name" in document or "auth_mode" in document or str(document.get("type", "")).lower() == "model":
        return True
    return schema.endswith(("deployment.schema.json", "endpoint.schema.json"))


def is_of_pipeline(document: Mapping[str, Any]) -> bool:
    return str(document.get("type", "")).lower() == "pipeline" or any(name in document for name in _PIPELINE_ONLY)


def mistaken_for(document: Mapping[Any, Any]) -> tuple[str, str] | None:
    """Return what a document is that is no job and no component, though people submit it as one, and what to do; None:
    nothing known."""
    parts = list(document.values())
    if parts and all(isinstance(part, Mapping) and str(part.get("type")).lower() in _STEP_TYPES for part in parts):
        names = ", ".join(map(str, document))
        return (
            f"these are steps of a pipeline ({names}), without the pipeline",
            "write `type: pipeline` and `jobs:` above them and indent them, or leave out the name of a single step",
        )
    if _is_flow(document):
        return (
            "this is a flow of prompt flow (flow.dag.yaml, flow.flex.yaml), which calls language models for single "
            "requests; neither a job nor a component of one",
            "an entry script whose run() calls the flow for each item makes a job of it",
        )
    return None


def _is_flow(document: Mapping[Any, Any]) -> bool:
    """Return whether this is a flow of prompt flow, with or without an environment, variants or a schema."""
    nodes = document.get("nodes")
    if isinstance(nodes, list) and any(isinstance(node, Mapping) and _OF_NODES & node.keys() for node in nodes):
        return True
    is_flex = isinstance(document.get("entry"), str) and "entry_script" not in document
    is_component = str(document.get("type", "")).lower().startswith("promptflow")  # as the client sends it
    return is_flex or is_component or "/promptflow/" in str(document.get("$schema", "")).lower()
