"""Folders of this machine that somebody names for results, in any form of a location."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.location import LOCAL, location_of
from parallelrun_core.storage.supported import supported_path


def local_folder(path_text: str | Path, option: str) -> Path:
    """The folder.

    Args:
        option: by which it was named, for the error.

    Raises:
        InvalidInput: it names no folder here.
    """
    location = location_of(str(path_text))
    if location.kind != LOCAL:
        raise InvalidInput.at(
            option, f"{str(path_text)!r} refers to {location.called}", "name a folder of this machine"
        )
    return Path(location.path)


def place_for_results(path_text: str | Path, option: str) -> str:
    """The path of a folder here, or the URL of one in an object store.

    Args:
        option: by which it was named, for the error.

    Raises:
        InvalidInput: it is on a kind of storage that isn't supported.
    """
    try:
        return supported_path(str(path_text), is_written=True)
    except ValueError as error:
        raise InvalidInput.at(option, str(error)) from error
