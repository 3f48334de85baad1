"""Fetches one object, or a part of it, in exactly the version that was listed, and links it to where it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.growing import GrowingPart, complete
from parallelrun_agent.staging.parts import Part
from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.stores import storage_of

_SMALL_BYTES: Final = 1 << 20
"""An object of at most so much is in memory before there is a file for it."""


def fetch(url: str, version: Version, target: Path, cache: StageCache, part: Part | None = None) -> int:
    """Have an object at this path; returns how many bytes came from the store, 0 if it was here already.

    Args:
        part: have a file that has only this of it.

    Raises:
        Replaced: it was replaced since it was listed.
        NoRoom: too much of the cache is in use.
        OSError: the store refuses or doesn't answer (`filename` is the URL), or the disk fails.
    """
    if cache.take(url, version, target, part):
        return 0
    if part is None and 0 < version.size_bytes <= _SMALL_BYTES:
        cache.reserve(version.size_bytes)
        try:
            content = _whole(url, version)
        except BaseException:
            cache.give_back(version.size_bytes)
            raise
        cache.put(url, version, content, target)
        return version.size_bytes
    fetched = 0
    with cache.begin(url, version, part) as new:
        wanted = part or Part(0, version.size_bytes)
        if wanted.start < wanted.end:
            with storage_of(url).open(url, version=version) as source:
                growing = GrowingPart(source, version.size_bytes, new, wanted, url)
                growing.fetch(wanted.end)
                if wanted.rest is not None:
                    complete(growing, wanted.rest)
                fetched = growing.end - wanted.start
        new.keep(target)
    return fetched


def _whole(url: str, version: Version) -> bytes:
    with storage_of(url).open(url, version=version) as source:
        content = source.read(version.size_bytes)
    if len(content) < version.size_bytes:
        raise Replaced(f"{url} is shorter than it was when it was listed")
    return content
