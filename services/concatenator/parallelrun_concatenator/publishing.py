"""How an output appears under its name: whole, in one step, and in nobody else's place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container
from pathlib import Path

from parallelrun_core.errors import Conflict


def publish(made: Path, target: Path, own: Container[str]) -> None:
    """Give a file its final name; it has its former one no more. Only an earlier output of the same job is replaced.

    A job is submitted when nothing is there. By its end another job may have come up with an output of that name.

    Args:
        own: the sha256 of what this job may have put there before.

    Raises:
        Conflict: something else is there.
    """
    try:
        os.link(made, target)  # unlike a rename, this replaces nothing
    except FileExistsError:
        if not _is_same(made, target):  # a server of files may answer so to its own second try
            _replace(made, target, own)
    except OSError:  # not every file system has links; what is wrong with this one otherwise, the rename tells
        _replace(made, target, own)
    made.unlink(missing_ok=True)


def _is_same(made: Path, target: Path) -> bool:
    try:
        return os.path.samestat(os.stat(made), os.lstat(target))
    except FileNotFoundError:
        return False


def _replace(made: Path, target: Path, own: Container[str]) -> None:
    if os.path.lexists(target) and _sha256(target) not in own:
        raise Conflict(
            f"{str(target)!r} has come up since the job was submitted, and nothing is ever overwritten. "
            "The rows are kept: move that file away, then resume the job."
        )
    os.rename(made, target)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        return ""  # a folder, or a link that leads nowhere
