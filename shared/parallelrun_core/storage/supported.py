"""Supported locations, and the paths that stand for them. Nothing is opened here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from parallelrun_core.problems import closest, was_meant
from parallelrun_core.storage.location import DATASTORE, LOCAL, location_of
from parallelrun_core.storage.schemes import OBJECT_KINDS, OBJECT_SCHEMES, SCHEMES
from parallelrun_core.storage.url_flaws import flaw_of

KINDS: Final = OBJECT_KINDS | {LOCAL, DATASTORE}
"""The kinds of locations for which `stores.py` has a storage."""
_SCHEMES: Final = (
    *(name for name, row in SCHEMES.items() if row.kind in OBJECT_KINDS and name != "http"), "azureml", "file",
)  # fmt: skip
_ALIKE: Final = 0.5
_WITHOUT_PATHS: Final = re.compile(
    r"azureml:/*datastores/(?P<name>[^/]+)(?!/paths(?:/|$))/+(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
_SUPPORTED: Final = (
    "a path on a disk or volume that all nodes share, a URL of an object store "
    f"({', '.join(url for url in OBJECT_SCHEMES if not url.startswith('http'))}), one of a file (https://), or a path "
    "in a datastore (azureml://datastores/NAME/paths/PATH)"
)


def supported_path(text: str, *, is_written: bool = False) -> str:
    """The path of a location as the product uses it, such as `/data` for `file:///data`.

    Args:
        is_written: it is for an output.

    Raises:
        ValueError: no storage is there for it, or a URL that nobody could use; the message says what to do.
    """
    location = location_of(text)
    if location.kind in KINDS:
        if text and not location.path:
            raise ValueError(f"{text!r} names no file or folder")
        if location.kind not in (LOCAL, DATASTORE) and (flaw := flaw_of(location.path)):
            raise ValueError(flaw)
        return location.path
    suggestion = was_meant(_meant(text)[:200])
    question = f"; {suggestion}" if suggestion else ""
    can, instead = ("written to", "name one of these, and copy what is there afterwards")
    if not is_written:
        can, instead = ("read", "copy the data to one of these")
    raise ValueError(
        f"{text[:200]!r} refers to {location.called}: this kind of storage is not supported yet and can't be {can} "
        f"here. Supported is {_SUPPORTED}: {instead}{question}"
    )


def _meant(text: str) -> str:
    """The location that was probably meant by one that can't be used; empty: none looks like it."""
    if datastore := _WITHOUT_PATHS.fullmatch(text):
        return f"azureml://datastores/{datastore['name']}/paths/{datastore['rest']}"
    scheme, slashes, rest = text.partition("://")
    alike = [each for each in _SCHEMES if each[0] == scheme[:1].lower() and each != scheme.lower()]
    near = closest(scheme.lower(), alike, cutoff=_ALIKE) if slashes else ""
    return f"{near}://{rest}" if near else ""


def local_path(text: str, purpose: str) -> str:
    """The path of what must be on a disk.

    Raises:
        ValueError: it is in another kind of storage.
    """
    location = location_of(text)
    if location.kind != LOCAL:
        raise ValueError(
            f"{text[:200]!r} refers to {location.called}: {purpose} can't be read there: give the path of a folder, "
            "which is sent with the job or is on a volume that all nodes share"
        )
    return location.path


def absolute_path(text: str, folder: Path | None) -> str:
    """Return what a document in this folder means by a location: `supported_path` may still refuse it.

    Args:
        folder: None if there is none; relative paths then stay as they are.

    Raises:
        ValueError: there is no such home folder.
    """
    location = location_of(text)
    if location.kind != LOCAL or folder is None or not location.path:
        return location.path
    try:
        return str(folder / Path(location.path).expanduser())
    except RuntimeError as error:
        raise ValueError(f"{location.path!r}: there is no such home folder") from error
