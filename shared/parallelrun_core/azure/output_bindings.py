"""Outputs of pipelines and their steps, as Azure documents bind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from parallelrun_core.azure.bindings import (
    ARTIFACTS,
    DEFAULT_DATASTORE,
    declared_entries,
    local_path,
    parent_key,
    unique_entries,
)
from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.scope import Fields, PipelineScope
from parallelrun_core.azure.v2_models import LITERAL_TYPES, GivenOutput
from parallelrun_core.names.patterns import ASSET_NAME, in_words
from parallelrun_core.spec.expressions import (
    is_expression,
    same_name,
)
from parallelrun_core.storage.location import DATASTORE, LOCAL, location_of


def pipeline_outputs(raw: Mapping[str, Any], scope: PipelineScope, location: DocumentLocation) -> dict[str, Fields]:
    names = unique_entries(raw, location, scope.findings)
    return {name: _output(name, value, None, scope, location.below(name)) for name, value in names.items()}


def step_outputs(
    raw: Mapping[str, Any],
    declared: Mapping[str, Any] | None,
    scope: PipelineScope,
    location: DocumentLocation,
    *,
    has_artifacts: bool = False,
) -> dict[str, Fields]:
    """The outputs of a step as the job spec has them.

    Args:
        declared: what its component declares; None when it has no component.
        has_artifacts: it is a command, which may have an output that its component doesn't declare.
    """
    if declared is not None and has_artifacts and same_name(ARTIFACTS, raw) is not None:
        declared = {ARTIFACTS: None, **declared}
    outputs = declared_entries(raw, declared, scope, location, "output")
    fields = {}
    for name in outputs if declared is None else declared:
        key = same_name(name, outputs)
        value = outputs[key] if key else None
        fields[name] = _output(name, value, (declared or {}).get(name), scope, location.below(key or name))
    return fields


def _output(name: str, value: Any, declared: Any, scope: PipelineScope, location: DocumentLocation) -> Fields:
    document = {"path": value} if is_expression(value) else {} if value is None else value
    entry = scope.findings.validate(GivenOutput, document, location.pointer)
    below = scope.findings.validate(GivenOutput, declared or {}, location.pointer)
    if entry is None or below is None:
        return {}
    path = entry.path or below.path
    base: Fields = {}
    if is_expression(path) and "parent." in path:
        key = parent_key(path, "outputs", scope.outputs, location.pointer, scope.findings)
        base = scope.outputs[key] if key else {}
        scope.outputs_to |= {name: key} if key else {}
        path = None
    # The SDK writes uri_folder into a step where only a mode was set: what the component writes, it knows best.
    kind = below.type or entry.type or base.get("type") or "uri_folder"
    is_file = kind == "uri_file" or kind in LITERAL_TYPES
    fields: Fields = {**base, "type": "uri_file" if is_file else "uri_folder"}
    if path:
        path = path.replace("${{output_name}}", name).replace("${{name}}", scope.unique_name)
        path = DEFAULT_DATASTORE.sub(lambda whole: scope.default_datastore or whole[0], path)
        if is_file and path.endswith("/"):
            scope.findings.note(location.at("path"), f"it is a folder, and the output a file: it is {name!r} in there")
            path += name
        path = scope.findings.place(path, location.at("path"), is_output=True)
        fields |= _output_path(path, fields["type"], location, scope.findings)
    return fields | _asset_of(entry, below, kind, location, scope.findings)


def _asset_of(
    output: GivenOutput, below: GivenOutput, kind: str, location: DocumentLocation, findings: Findings
) -> Fields:
    """The asset that an output becomes, if it has a name."""
    name, version = (
        str(label) if label is not None else ""
        for label in (output.name or below.name, output.version or below.version)
    )
    if not name:
        if version:
            findings.wrong(location.at("version"), "a version needs a name", "give the output a name, too")
        return {}
    for label, text in (("name", name), ("version", version)):
        if text and not re.fullmatch(ASSET_NAME, text):
            findings.wrong(location.at(label), f"{text!r} can't be the {label} of an asset", in_words(ASSET_NAME))
            return {}
    return {"asset": {"name": name, "version": version, "type": "uri_file" if kind in LITERAL_TYPES else kind}}


def _output_path(path: str, kind: str, location: DocumentLocation, findings: Findings) -> Fields:
    storage_kind = location_of(path).kind
    reason = ""
    if DEFAULT_DATASTORE.search(path) and storage_kind == DATASTORE:
        reason = "the pipeline's settings name no default_datastore"
    elif storage_kind == LOCAL and location.folder is None and not path.startswith("/") and not is_expression(path):
        reason = "the folder that it is relative to is not on the server"
    if reason:
        # Scripts and people look for the file by its name.
        findings.note(location.at("path"), f"{reason}: it goes to the job's own outputs")
        last = path.rstrip("/").rpartition("/")[2]
        return {"file_name": last} if kind == "uri_file" and last and not is_expression(last) else {}
    if is_expression(path):
        findings.wrong(
            location.at("path"), f"{path!r} cannot be resolved here", "give a folder or file, or leave it out"
        )
        return {}
    local = local_path(path, location, findings, is_written=True)
    return {"path": local} if local else {}
