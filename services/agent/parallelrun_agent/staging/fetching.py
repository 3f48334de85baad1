"""Fetches one object in exactly the version that was listed, into the cache, and links it to where it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_agent.staging.cache import StageCache
from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.stores import storage_of

if TYPE_CHECKING:
    from typing import BinaryIO

_CHUNK_BYTES: Final = 4 << 20


def fetch(url: str, version: Version, target: Path, cache: StageCache) -> int:
    """Have an object at this path; returns how many bytes came from the store, 0 if it was here already.

    Raises:
        Replaced: it was replaced since it was listed.
        NoRoom: too much of the cache is in use.
        OSError: the store refuses or doesn't answer (`filename` is the URL), or the disk fails.
    """
    if cache.take(url, version, target):
        return 0
    with cache.begin(url, version) as new:
        if version.size_bytes:
            with storage_of(url).open(url, version=version) as source:
                _copy(source, new.fd, version.size_bytes, url)
        new.keep(target)
    return version.size_bytes


def _copy(source: BinaryIO, fd: int, size: int, url: str) -> None:
    left = size
    while left:
        chunk = source.read(min(left, _CHUNK_BYTES))
        if not chunk:
            raise Replaced(f"{url} is shorter than it was when it was listed")
        left -= len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]
