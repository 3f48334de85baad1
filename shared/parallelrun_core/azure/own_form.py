"""Our own form of a job: the fields of `JobSpec`, as docs/job-spec.md has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.environment import note_image, read_build, read_conda_file, read_environment
from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.named import named_code, named_environment, named_input
from parallelrun_core.names.assets import MODEL_TYPES
from parallelrun_core.spec.data_defaults import OWN

_BY_PATH: Final = "extract_columns_from_partition_format"
_OWN: Final[dict[str, dict[str, str]]] = {
    "read_delimited": {"on_mismatch": "keep", "inference": "exact", "columns_by": "name"},
    "read_json_lines": {"on_mismatch": "keep"},
    _BY_PATH: {"on_mismatch": "error"},
}


def read_own(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> Draft:
    """A job spec, with the content of the file that its environment names."""
    draft = Draft(dict(document), default=location.pointer, data_defaults=OWN)
    if findings.names is not None:
        _put_named(draft, location, findings)
    _put_table_options(draft.fields)
    environment = draft.fields.get("environment")
    if isinstance(environment, dict):
        if isinstance(environment.get("conda_file"), str):
            where = location.below("environment", "conda_file")
            inlined = read_conda_file(environment["conda_file"], where, findings)
            environment = {**environment, "conda_file": inlined}
        if environment.get("build"):
            where = location.below("environment", "build")
            environment = {**environment, "build": read_build(environment["build"], where, findings) or None}
        draft.fields["environment"] = environment
        if environment.get("image"):
            note_image(location.at("environment", "image"), findings)
    return draft


def _put_table_options(fields: dict[str, Any]) -> None:
    """Say in each read step what it does where our own form differs from an MLTable file, unless that is said."""
    inputs = fields.get("inputs")
    if not isinstance(inputs, dict):
        return
    fields["inputs"] = {
        name: {**entry, "transformations": [with_own_options(step) for step in entry["transformations"]]}
        if isinstance(entry, dict) and isinstance(entry.get("transformations"), list | tuple)
        else entry
        for name, entry in inputs.items()
    }


def _put_named(draft: Draft, location: DocumentLocation, findings: Findings) -> None:
    """Put what names of assets stand for in their place."""
    fields = draft.fields
    if isinstance(fields.get("inputs"), str):
        fields["inputs"] = {"data": fields["inputs"]}
    if isinstance(fields.get("inputs"), dict):
        fields["inputs"] = {
            name: _named_input(entry, location.below("inputs", name), findings)
            for name, entry in fields["inputs"].items()
        }
    if isinstance(fields.get("output"), str):
        fields["output"] = findings.place(fields["output"], location.at("output"), is_output=True)
    if isinstance(fields.get("outputs"), dict):
        fields["outputs"] = {
            name: _placed(entry, location.below("outputs", name), findings) for name, entry in fields["outputs"].items()
        }
    if isinstance(fields.get("environment"), str):
        named = named_environment(fields["environment"], location.below("environment"), findings)
        if named is not None:
            where = location.below("environment")
            fields["environment"], variables = read_environment(named, where, findings)
            if variables and isinstance(entry := fields.get("environment_variables", {}), dict):
                fields["environment_variables"] = {**variables, **entry}
    if isinstance(fields.get("code"), str):
        fields["code"] = named_code(fields["code"], location.below("code"), findings) or fields["code"]


def _placed(output: object, location: DocumentLocation, findings: Findings) -> object:
    """An output of our own form, at the location that stands for its path."""
    if isinstance(output, dict) and isinstance(output.get("path"), str):
        return {**output, "path": findings.place(output["path"], location.at("path"), is_output=True)}
    return output


def _named_input(entry: object, location: DocumentLocation, findings: Findings) -> object:
    """An input of our own form, with the path that stands for its name."""
    fields = {"path": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, dict) or not isinstance(fields.get("path"), str):
        return entry
    path = findings.place(fields["path"], location.at("path"))
    kind = fields.get("model") or fields.get("type")
    named = named_input(path, str(kind) if kind else None, location, findings)
    if not named:
        return entry if path == fields["path"] else {**fields, "path": path}
    asset_type = named["type"] if named["type"] not in MODEL_TYPES else ""
    named["type"] = fields.get("type") or asset_type or "uri_folder"
    return {**fields, **named}


def with_own_options(step: object) -> object:
    """A step as a job of our own form has it: with its own options said, unless the job says others."""
    entry = {step: None} if isinstance(step, str) else step
    if not isinstance(entry, dict) or len(entry) != 1:
        return step
    name, options = next(iter(entry.items()))
    if name == _BY_PATH and isinstance(options, str):
        options = {"partition_format": options}
    if name not in _OWN or not isinstance(options, dict | None):
        return step
    return {name: {**_OWN[name], **(options or {})}}
