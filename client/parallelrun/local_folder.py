"""Folders of this machine that somebody names for results, in any form of a location."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.supported import supported_path


def local_folder(given: str | Path, option: str) -> Path:
    """The folder.

    Args:
        option: by which it was named, for the error.

    Raises:
        InvalidInput: it is on a kind of storage that isn't supported, and no name for a folder here.
    """
    try:
        return Path(supported_path(str(given), is_written=True))
    except ValueError as error:
        raise InvalidInput.at(option, str(error)) from error
