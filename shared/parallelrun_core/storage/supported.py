"""Supported locations as users write them, and the paths by which the product knows them. Nothing is opened here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from parallelrun_core.problems import closest, was_meant
from parallelrun_core.storage.location import DATASTORE, LOCAL, location_of
from parallelrun_core.storage.schemes import SCHEMES, STORAGE_OF, STORED
from parallelrun_core.storage.url_flaws import flaw_of

KINDS: Final = frozenset({*STORAGE_OF, LOCAL, DATASTORE})
"""The kinds of locations for which `stores.py` has a storage."""
_SCHEMES: Final = (
    *(name for name, row in SCHEMES.items() if row.storage and name != "http"), "azureml", "file",
)  # fmt: skip
"""Schemes that are suggested in place of one that isn't supported."""
_LEAST_LIKENESS: Final = 0.5
_WITHOUT_PATHS: Final = re.compile(
    r"azureml:/*datastores/(?P<name>[^/]+)(?!/paths(?:/|$))/+(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
"""A path in a datastore that lacks `paths/`."""
_SUPPORTED: Final = (
    "a path on a disk or volume that all nodes share, a URL of an object store "
    f"({', '.join(url for url in STORED if not url.startswith('http'))}), one of a file (https://), or a path "
    "in a datastore (azureml://datastores/NAME/paths/PATH)"
)


def supported_path(text: str, *, is_written: bool = False) -> str:
    """The path of a location as the product knows it, such as `/data` for `file:///data`.

    Args:
        is_written: an output is written there.

    Raises:
        ValueError: it is in a store that isn't supported, or is a URL that nobody could use; says what to do.
    """
    location = location_of(text)
    if location.kind in KINDS:
        if text and not location.path:
            raise ValueError(f"{text!r} names no file or folder")
        if location.kind not in (LOCAL, DATASTORE) and (flaw := flaw_of(location.path)):
            raise ValueError(flaw)
        return location.path
    raise ValueError(_unsupported(text, location.called, is_written=is_written))


def _unsupported(text: str, store: str, *, is_written: bool) -> str:
    """Return what to do about a location in a store that isn't supported."""
    can, instead = "read", "copy the data to one of these"
    if is_written:
        can, instead = "written to", "name one of these, and copy what is there afterwards"
    suggestion = was_meant(_closest(text)[:200])
    return (
        f"{text[:200]!r} refers to {store}: this kind of storage is not supported yet and can't be {can} here. "
        f"Supported is {_SUPPORTED}: {instead}{suggestion and f'; {suggestion}'}"
    )


def _closest(text: str) -> str:
    """The supported location that looks most like one that isn't; empty: none does."""
    if datastore := _WITHOUT_PATHS.fullmatch(text):
        return f"azureml://datastores/{datastore['name']}/paths/{datastore['rest']}"
    scheme, slashes, rest = text.partition("://")
    candidates = [each for each in _SCHEMES if each[0] == scheme[:1].lower() and each != scheme.lower()]
    supported_scheme = closest(scheme.lower(), candidates, cutoff=_LEAST_LIKENESS) if slashes else ""
    return f"{supported_scheme}://{rest}" if supported_scheme else ""


def local_path(text: str, purpose: str) -> str:
    """The path of a location that must be on a disk.

    Args:
        purpose: what it is, such as "code"; for the message.

    Raises:
        ValueError: it is in an object store or a datastore.
    """
    location = location_of(text)
    if location.kind != LOCAL:
        raise ValueError(
            f"{text[:200]!r} refers to {location.called}: {purpose} can't be read there: give the path of a folder, "
            "which is sent with the job or is on a volume that all nodes share"
        )
    return location.path


def absolute_path(text: str, folder: Path | None) -> str:
    """The location that a document in a folder means; `supported_path` may still refuse it.

    Args:
        folder: relative paths start from it; None: they stay as they are.

    Raises:
        ValueError: it begins with `~`, and there is no such home folder.
    """
    location = location_of(text)
    if location.kind != LOCAL or folder is None or not location.path:
        return location.path
    try:
        return str(folder / Path(location.path).expanduser())
    except RuntimeError as error:
        raise ValueError(f"{location.path!r}: there is no such home folder") from error
