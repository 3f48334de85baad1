"""The objects of an input that is needed whole, as they were listed, and where each is to be."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.objects.trouble import Missing
from parallelrun_core.storage.stores import storage_of


class SideObject(NamedTuple):
    url: str
    version: Version
    place: Path


class SideObjects:
    """The objects of one side input, listed once.

    Args:
        folder: where they are to be.

    Raises:
        Missing: there is none.
        ValueError: they can't all be files of one folder.
        OSError: the store refuses, or doesn't answer.

    Attributes:
        missing: those that are not there yet, by URL; the fetcher's to keep.
        path: of the folder, or of the file if the input is one.
    """

    def __init__(self, url: str, folder: Path) -> None:
        storage, versions = storage_of(url), _listed(url)
        top, pattern = storage.split(url)
        places = {each: folder / (storage.below(each, top) or storage.from_everywhere(each)) for each in versions}
        _check(places, folder)
        self.missing = {each: SideObject(each, version, places[each]) for each, version in versions.items()}
        self.size_bytes = sum(version.size_bytes for version in versions.values())
        first = next(iter(versions))
        is_one_file = not pattern and storage.below(top, first) is not None
        self.path = places[first] if is_one_file else folder


def _listed(url: str) -> dict[str, Version]:
    listing = storage_of(url).files(url)
    objects: dict[str, Version] = {}
    for folder, names in listing:
        urls = (f"{os.fsdecode(folder)}/{os.fsdecode(name)}" for name in names)
        objects.update(zip(urls, listing.versions or (), strict=True))
    if not objects:
        raise Missing(errno.ENOENT, "there is nothing at this URL", url)
    return objects


def _check(places: dict[str, Path], folder: Path) -> None:
    files = {str(place): url for url, place in places.items()}
    for place, url in files.items():
        above = os.path.dirname(place)
        while len(above) > len(str(folder)):
            if above in files:
                raise ValueError(f"{files[above]} can't be a file where {url} is: rename one of these objects")
            above = os.path.dirname(above)
