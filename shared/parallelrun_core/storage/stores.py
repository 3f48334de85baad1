"""Which storage a location belongs to, and which locations are refused because there is none for them yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from parallelrun_core.storage.interface import Storage
from parallelrun_core.storage.local import LocalStorage
from parallelrun_core.storage.location import LOCAL, location_of

_LOCAL_STORAGE: Final = LocalStorage()
_STORAGES: Final[Mapping[str, Storage]] = {LOCAL: _LOCAL_STORAGE}
"""By the kind of location."""
_SUPPORTED: Final = "a path on a disk or volume that all nodes share, or file: and such a path"


def supported_path(text: str, *, is_written: bool = False) -> str:
    """The path of a location as the product uses it, such as `/data` for `file:///data`.

    Args:
        is_written: it is for an output.

    Raises:
        ValueError: no storage is there for it; the message says which are, and what to do.
    """
    location = location_of(text)
    if location.kind in _STORAGES:
        if text and not location.path:
            raise ValueError(f"{text!r} names no file or folder")
        return location.path
    can, instead = ("written to", "give the path of a folder, and upload what is there afterwards")
    if not is_written:
        can, instead = ("read", "download the data, and give the path of the folder or file")
    raise ValueError(
        f"{text[:200]!r} refers to {location.called}: this kind of storage is not supported yet and can't be {can} "
        f"here. Supported is {_SUPPORTED}: {instead}"
    )


def absolute_path(text: str, folder: Path | None) -> str:
    """What a document in this folder means by a location: `supported_path` may still refuse it.

    Args:
        folder: None if there is none; relative paths then stay as they are.

    Raises:
        ValueError: there is no such home folder.
    """
    location = location_of(text)
    storage = _STORAGES.get(location.kind)
    if storage is None or folder is None or not location.path:
        return location.path
    return storage.absolute(location.path, folder)


def storage_of(path: str | bytes) -> Storage:
    """The storage of a path that `supported_path` has returned, or that a listing has yielded.

    Raises:
        ValueError: there is none for it.
    """
    if path[:1] in ("/", b"/"):  # asked for each of many files, nearly all of them local
        return _LOCAL_STORAGE
    location = location_of(path if isinstance(path, str) else os.fsdecode(path))
    if location.kind not in _STORAGES:
        raise ValueError(f"{location.path!r}: there is no storage for this")
    return _STORAGES[location.kind]
