"""Ids of things in a workspace, and what is meant by them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_WORKSPACE: Final = r"/subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+"
SINGULAR: Final = {
    "codes": "code", "data": "data", "models": "model", "environments": "environment", "components": "component",
}  # fmt: skip
"""The type of each kind of assets, by what the client calls the kind."""
_VERSION: Final = re.compile(
    rf"(?:azureml:)?/{{0,2}}{_WORKSPACE[1:]}/({'|'.join(SINGULAR)})/([^/]+)/versions/([^/]+)/?",
    re.IGNORECASE,
)
_COMPUTE: Final = re.compile(rf"(?:azureml:)?{_WORKSPACE}/computes/([^/]+)", re.IGNORECASE)
_DATASTORE: Final = re.compile(rf"(?:azureml:)?{_WORKSPACE}/datastores/([^/]+)", re.IGNORECASE)


class AssetVersion(NamedTuple):
    """A version of an asset of this workspace."""

    kind: str
    name: str
    version: str


def version_of(text: str) -> AssetVersion | None:
    """The version of which this is the id; None if it is none."""
    match = _VERSION.fullmatch(text)
    # The client leaves `azureml:` in front of the names of models that documents give it with a label.
    return AssetVersion(match[1].lower(), without_prefix(match[2]), match[3]) if match else None


def shortened(text: str) -> str:
    """The short name of a compute or a datastore of which this is the id; anything else stays as it is."""
    match = _COMPUTE.fullmatch(text) or _DATASTORE.fullmatch(text)
    return f"azureml:{match[1]}" if match else text


def without_prefix(text: str) -> str:
    """A name without `azureml:` in front."""
    return text.removeprefix("azureml:")
