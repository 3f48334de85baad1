"""Fetches one object, or a part of it, in exactly the version that was listed, and links it to where it is used."""

from __future__ import annotations

from typing import Final

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.new_object import NewObject
from parallelrun_agent.staging.partial_file import GrowingPart, complete
from parallelrun_agent.staging.parts import FilePart
from parallelrun_agent.staging.room import StagingFull
from parallelrun_core.folder.disk_trouble import is_full
from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.stores import storage_of

SMALL_BYTES: Final = 1 << 20
"""An object of at most so much is in memory before there is a file for it."""


def take(url: str, version: Version, target: str, cache: StageCache, part: FilePart | None = None) -> bool:
    """Have an object at this path, if it is here already; whether it is.

    Raises:
        OSError: it can't be linked there.
    """
    return version.is_known and cache.take(url, version, target, part)


def fetch(url: str, version: Version, target: str, cache: StageCache, part: FilePart | None = None) -> int:
    """Have an object at this path; returns how many bytes came from the store, 0 if it was here already.

    Raises:
        Replaced, NoRoom, OSError: see `bring`.
    """
    return 0 if take(url, version, target, cache, part) else bring(url, version, target, cache, part)


def bring(url: str, version: Version, target: str, cache: StageCache, part: FilePart | None = None) -> int:
    """Have an object at this path that isn't here; returns how many bytes came from the store.

    Args:
        part: have a file that has only this of it.

    Raises:
        Replaced: it was replaced since it was listed.
        NoRoom: too much of the cache is in use, or the disk is full, whatever is removed from the cache.
        OSError: the store refuses or doesn't answer (`filename` is the URL), or the disk fails.
    """
    try:
        return _fetch(url, version, target, cache, part)
    except OSError as error:
        if not is_full(error):
            raise
    cache.free(version.size_bytes if part is None else part.end - part.start)
    try:
        return _fetch(url, version, target, cache, part)
    except OSError as error:
        if is_full(error):
            raise StagingFull(str(error)) from error
        raise


def _fetch(url: str, version: Version, target: str, cache: StageCache, part: FilePart | None) -> int:
    if part is None and 0 < version.size_bytes <= SMALL_BYTES:
        cache.reserve(version.size_bytes)
        try:
            content = storage_of(url).whole(url, version)
        except BaseException:
            cache.give_back(version.size_bytes)
            raise
        cache.put(url, version, content, target)
        return version.size_bytes
    with cache.begin(url, version, part) as new:
        fetched = version.size_bytes
        if part is not None:
            fetched = _fetch_part(url, version, part, new)
        elif fetched:
            storage_of(url).copy(url, version, new.fd)
        new.keep(target)
    return fetched


def _fetch_part(url: str, version: Version, part: FilePart, new: NewObject) -> int:
    if part.start == part.end:
        return 0
    with storage_of(url).open(url, version=version) as source:
        growing = GrowingPart(source, version, new, part, url)
        growing.begin()
        if part.rest is not None:
            complete(growing, part.rest)
        return growing.end - part.start
