"""The storage that a location belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from parallelrun_core.storage.interface import Storage
from parallelrun_core.storage.local import LocalStorage
from parallelrun_core.storage.location import DATASTORE, LOCAL, location_of
from parallelrun_core.storage.schemes import STORAGE_OF


@cache
def _objects() -> Storage:
    from parallelrun_core.storage.objects import ObjectStorage  # most processes never need it

    return ObjectStorage()


_LOCAL_STORAGE: Final = LocalStorage()
_BY_NAME: Final[Mapping[str, Callable[[], Storage]]] = {"objects": _objects}
"""The storages of URLs, by what rows of `schemes.py` call them."""
STORAGES: Final[Mapping[str, Callable[[], Storage]]] = {
    LOCAL: lambda: _LOCAL_STORAGE,
    DATASTORE: _objects,
    **{kind: _BY_NAME[name] for kind, name in STORAGE_OF.items()},
}
"""By the kind of location: one for each of `supported.KINDS`."""


def storage_of(path: str | bytes) -> Storage:
    """The storage of a path that `supported_path` has returned, or that a listing has yielded.

    Raises:
        ValueError: there is none for it.
    """
    if path[:1] in ("/", b"/"):  # asked for each of many files, nearly all of them local
        return _LOCAL_STORAGE
    location = location_of(path if isinstance(path, str) else os.fsdecode(path))
    if location.kind not in STORAGES:
        raise ValueError(f"{location.path!r}: there is no storage for this")
    return STORAGES[location.kind]()
