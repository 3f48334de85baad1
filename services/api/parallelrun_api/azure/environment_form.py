"""Environments as Azure ML's client has them, and as documents have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from parallelrun_core.names.computes import DOCKERFILE
from parallelrun_core.spec import load_document


def content_of(properties: Mapping[str, Any], place: Callable[[str], str]) -> dict[str, Any]:
    """Return the content of an environment that the client has sent.

    Args:
        place: where the client has uploaded what this URI names.
    """
    fields: dict[str, Any] = {}
    if properties.get("image"):
        fields["image"] = properties["image"]
    conda = properties.get("condaFile")
    if isinstance(conda, str) and conda.strip():
        fields["conda_file"] = load_document(conda)
    elif conda:
        fields["conda_file"] = conda
    build = properties.get("build")
    if isinstance(build, dict) and build.get("contextUri"):
        dockerfile = str(build.get("dockerfilePath") or DOCKERFILE)
        fields["build"] = {"path": place(str(build["contextUri"])), "dockerfile_path": dockerfile}
    return fields


def properties_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment with this content as the client would have sent it."""
    conda = content.get("conda_file")
    properties = {"image": content.get("image"), "condaFile": yaml.safe_dump(conda) if conda else None}
    if build := content.get("build"):
        properties["build"] = {"contextUri": build.get("path"), "dockerfilePath": build.get("dockerfile_path")}
    return properties
