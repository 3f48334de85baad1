"""The Python of the workers that a document asks for (reference §2.4), as far as it can be built here."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from parallelrun_core.azure.findings import DocumentLocation, Findings
from parallelrun_core.azure.named import named_environment
from parallelrun_core.computes.images import BUILD_NOTE, NOTE, OWN_PYTHON
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import UnknownAsset, stored_code
from parallelrun_core.spec.conda import python_of
from parallelrun_core.spec.environment import Environment, require_content
from parallelrun_core.spec.python_versions import OLDEST_MINOR, is_too_old
from parallelrun_core.storage.location import LOCAL, location_of
from parallelrun_core.untrusted.document import load_document

_FIELDS: Final = frozenset({
    "$schema", "version", "description", "tags", "properties", "os_type", "environment_variables", "inference_config",
    "type", *Environment.model_fields,
})  # fmt: skip
_REAL_SDK: Final = re.compile(r"azureml-(core|defaults|sdk)(?![\w.-])", re.IGNORECASE)
"""A requirement that brings the first SDK, which wins over what stands for it here."""
_CONVERTED_FIELDS: Final = frozenset({"name", "image", "build", "conda_file"})
"""The fields that are not taken as they are, to be checked with the job spec."""


def read_environment(
    value: Any, location: DocumentLocation, findings: Findings
) -> tuple[dict[str, Any], dict[str, str]]:
    """The environment, as the job spec has it, and the variables that come with it."""
    if isinstance(value, str):
        value, location = _named(value, location, findings)
        if value is None:
            return {}, {}
    if not isinstance(value, dict):
        findings.wrong(location.pointer, "must be a name such as azureml:NAME@latest, or a mapping")
        return {}, {}
    for field in value:
        if field not in _FIELDS:
            findings.wrong(location.at(field), "unknown field")
    try:
        require_content(value, location.pointer)
    except InvalidInput as error:
        findings.problems += error.problems
        return {}, {}
    if (stand_in := stand_in_for_image(value.get("image"), location, findings)) is not None:
        value = {**stand_in, "environment_variables": value.get("environment_variables")}
    environment: dict[str, Any] = {"name": str(value.get("name") or "")}
    if value.get("image"):
        note_image(location.at("image"), findings)
        environment["image"] = str(value["image"])
    if value.get("build"):
        environment["build"] = read_build(value["build"], location.below("build"), findings)
    if value.get("conda_file"):
        environment["conda_file"] = read_conda_file(value["conda_file"], location.below("conda_file"), findings)
    environment |= {field: value.get(field) for field in Environment.model_fields if field not in _CONVERTED_FIELDS}
    return {name: field_value for name, field_value in environment.items() if field_value}, value.get(
        "environment_variables"
    ) or {}


def stand_in_for_image(image: object, location: DocumentLocation, findings: Findings) -> dict[str, Any] | None:
    """Return what the site file says of environments with this image, as a document has it; None if it says nothing."""
    if findings.names is None or not isinstance(image, str) or not image:
        return None
    try:
        asset = findings.names.asset("environment", image)
    except (UnknownAsset, InvalidInput):
        return None
    findings.note(location.pointer, f"the site file says what stands for environments with the image {image}")
    return dict(asset.content)


def note_image(pointer: str, findings: Findings) -> None:
    """Note that no container is created for a job; a submission takes it back where one is."""
    findings.note(pointer, NOTE)


def read_build(value: Any, location: DocumentLocation, findings: Findings) -> dict[str, Any]:
    """A Dockerfile and its folder, which is absolute from here on, or stored already; empty if it is out of reach."""
    if not isinstance(value, dict) or not isinstance(value.get("path"), str):
        findings.wrong(location.pointer, "it lacks the folder that its Dockerfile copies from", "as in path: ./docker")
        return {}
    path = findings.place(value["path"])
    if not stored_code(path):
        kind = location_of(path)
        if kind.kind != LOCAL:
            message = f"{value['path']!r} is {kind.called}, so {BUILD_NOTE}, if `path` is a folder"
            findings.note(location.at("path"), message)
            return {}
        path = location.absolute(path)
    findings.note(location.pointer, BUILD_NOTE)
    return {**value, "path": path}


def read_conda_file(value: Any, location: DocumentLocation, findings: Findings) -> dict[str, Any]:
    """A conda environment: the mapping itself, or the content of the named file."""
    if isinstance(value, str):
        value = read_file(value, location, findings)
        if value is None:
            return {}
    if not isinstance(value, dict) or not isinstance(value.get("dependencies", []), list):
        findings.wrong(location.pointer, "a conda environment is a mapping with a list of dependencies")
        return {}
    with suppress(ValueError):  # reported when the job spec is checked
        version = python_of(value)
        if is_too_old(version):
            message = f"the workers need Python 3.{OLDEST_MINOR} or newer, not {version}: they use that of their node"
            findings.note(location.pointer, message)
        elif version and not version.startswith(f"3.{sys.version_info.minor}"):
            message = f"Python {version} where a node has it or can fetch it; otherwise that of the node"
            findings.note(location.pointer, message)
    groups = [each["pip"] for each in value.get("dependencies") or () if isinstance(each, dict) and each.get("pip")]
    if any(_REAL_SDK.match(str(each)) for group in groups if isinstance(group, list) for each in group):
        message = (
            "scripts find the azureml.core of this package, which knows neither the job nor its models: leave it out"
        )
        findings.note(location.pointer, f"{message}, and they find that of ParallelRun")
    return value


def read_file(path: str, location: DocumentLocation, findings: Findings) -> Any:
    """A YAML file that a document names; None, with a problem, when it can't be read."""
    if location.folder is None:
        message = f"the file {path!r} is not available: this document came over the network"
        findings.wrong(
            location.pointer, message, "replace the name by the content of the file, or submit with the command line"
        )
        return None
    try:
        return load_document(Path(location.absolute(path)).read_bytes())
    except OSError as error:
        findings.wrong(location.pointer, f"{path}: {error.strerror or error}")
    except (InvalidInput, ValueError) as error:  # a path with a NUL is not that of any file
        findings.wrong(location.pointer, f"{path}: {error}")
    return None


def _named(name: str, location: DocumentLocation, findings: Findings) -> tuple[Any, DocumentLocation]:
    name = findings.place(name)
    named = named_environment(name, location, findings)
    if named is not None:
        if named["name"]:
            findings.note(location.pointer, f"the environment is azureml:{named['name']}")
        return named, DocumentLocation(location.pointer, None)
    if location_of(name).kind == "azureml":
        findings.note(location.pointer, f"an environment of Azure ML is not built here: {OWN_PYTHON}")
        return None, location
    is_file = name.startswith(("file:", "azureml:")) or name.endswith((".yml", ".yaml"))
    if not is_file:
        findings.wrong(
            location.pointer,
            f"{name!r} is neither an environment nor a file",
            f"as in azureml:{name}@latest, or a mapping",
        )
        return None, location
    environment = read_file(name, location, findings)
    beside = Path(location.absolute(name)).parent if location.folder is not None else None
    return environment, DocumentLocation(location.pointer, beside)
