"""Folders of this machine that somebody names for results, in any form of a location."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.location import LOCAL, location_of


def local_folder(given: str | Path, option: str) -> Path:
    """The folder.

    Args:
        option: by which it was named, for the error.

    Raises:
        InvalidInput: it names no folder here.
    """
    location = location_of(str(given))
    if location.kind != LOCAL:
        raise InvalidInput.at(option, f"{str(given)!r} refers to {location.called}", "name a folder of this machine")
    return Path(location.path)
