"""Locations: what may be written where a path may stand, that is a local path in any of its spellings, or a URL of some
storage.

    /data/x, data/x, ~/x                    a local path
    file:data/x, file:///data/x             the same; `file://` may also precede a relative path, as in MLTable files
    azureml:/data/x, azureml:./x            the same, as Azure ML's SDK writes local paths into its documents
    s3://…, gs://…, az://…, abfss://…       an object store
    https://…                               one file, or an object store by its address
    azureml://datastores/NAME/paths/x       a datastore, also with the workspace before it, which is left out
    azureml:NAME:VERSION                    an asset of Azure ML

Only `file:` and `azureml:` go without a slash: `s3:x` is a local name, but `s3:/x` is what `Path` makes of a URL. A
local name that looks like any of these is written with `./` in front.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from parallelrun_core.storage.schemes import SCHEMES

LOCAL: Final = "local"
DATASTORE: Final = "datastore"

_SCHEME: Final = re.compile(r"(file(?=:)|azureml(?=:)|[a-z][a-z0-9+.-]*(?=:/)):(//)?", re.IGNORECASE)
_GIT: Final = re.compile(r"git\+\w+", re.IGNORECASE)
_ASSET: Final = re.compile(r"azureml:/subscriptions/", re.IGNORECASE)
"""An asset by its whole id, which only looks like a path."""

_IN_DATASTORE: Final = re.compile(
    r"azureml://?(?:subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
    r"datastores/(?P<name>[^/]+)/paths(?:/+(?P<path>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_OF_DATASTORES: Final = "azureml://datastores/"


class Location(NamedTuple):
    kind: str
    """`local`, or the kind of storage."""
    path: str
    """A local path, relative or absolute; otherwise the URL, in one form for each datastore."""
    called: str = "a local path"
    """The name that people have for this kind of storage."""


def location_of(text: str) -> Location:
    """Return what a user's text means. Nothing is opened, and nothing needs to be there."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Location(LOCAL, text)
    name = scheme[1].lower()
    if name == "file":
        rest = text[scheme.end() :]
        if scheme[2] and rest.startswith("localhost/"):
            rest = rest.removeprefix("localhost")
        return Location(LOCAL, f"./{rest}" if _SCHEME.match(rest) else rest)  # or it would be taken for a URL later
    if name == "azureml":
        return _of_azureml(text, text[scheme.end() :], has_slashes=bool(scheme[2]))
    if name in SCHEMES:
        url = text if scheme[2] else f"{scheme[0]}//{text[scheme.end() :].lstrip('/')}"  # `Path` has taken one of them
        return Location(SCHEMES[name].kind, url, SCHEMES[name].called)
    if _GIT.fullmatch(name):
        return Location("git", text, "a git repository")
    return Location(name, text, f"a {name}: URL") if scheme[2] else Location(LOCAL, text)


def _of_azureml(text: str, rest: str, *, has_slashes: bool) -> Location:
    if place := _IN_DATASTORE.fullmatch(text):
        return Location(DATASTORE, in_datastore(place["name"], place["path"] or ""), "a datastore")
    if not has_slashes and not _ASSET.match(text) and rest.startswith(("/", "./", "../", "file:")):
        return location_of(rest)
    return Location("azureml", text, "an asset of Azure ML")


def in_datastore(name: str, path: str) -> str:
    """The one form that a path in a datastore has in the product."""
    return f"{_OF_DATASTORES}{name}/paths/{path}"


def datastore_of(path: str) -> str:
    """The name of the datastore in a path of the product; empty if it is in none."""
    return path[len(_OF_DATASTORES) :].partition("/")[0] if path.startswith(_OF_DATASTORES) else ""


def is_url(path: str) -> bool:
    """Return whether a path of the product is a URL, and not a local path."""
    return location_of(path).kind != LOCAL


def joined(folder: str, path: str) -> str:
    """A path that may be relative to a folder, made whole."""
    if is_url(path) or path.startswith("/") or not is_url(folder):
        return path if is_url(path) else str(PurePosixPath(folder, path))
    scheme, _, rest = folder.partition("://")
    return f"{scheme}://{posixpath.normpath(posixpath.join(rest, path))}"


def below(folder: str, name: str) -> str:
    """The path of what has this name in a folder: no name is a URL here, whatever it looks like."""
    return f"{folder.rstrip('/')}/{name}" if is_url(folder) else str(PurePosixPath(folder) / name)


def shortened(path: str) -> str:
    """A path without `..`."""
    return path if is_url(path) else posixpath.normpath(path)
