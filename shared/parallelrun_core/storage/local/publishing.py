"""Publishing of outputs: each gets its name whole, in one step, and without replacing anything of others."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Container
from pathlib import Path

from parallelrun_core.errors import Conflict


def publish(source: Path, target: Path, own_hashes: Container[str], *, name: str) -> None:
    """Move a file to its final name. Only an earlier output of the same job is replaced.

    When a job is submitted, nothing is there. By its end, another job may have published an output of that name.

    Args:
        own_hashes: the sha256 of what this job may have put there before.
        name: that of the target for people.

    Raises:
        Conflict: something else is there.
    """
    try:
        os.link(source, target)  # unlike a rename, this replaces nothing
    except FileExistsError:
        if not _is_same(source, target):  # a file server may answer so to its own retry
            _replace(source, target, own_hashes, name)
    except OSError:  # not every file system has links; any other problem shows in the rename
        _replace(source, target, own_hashes, name)
    source.unlink(missing_ok=True)


def _is_same(source: Path, target: Path) -> bool:
    try:
        return os.path.samestat(os.stat(source), os.lstat(target))
    except FileNotFoundError:
        return False


def _replace(source: Path, target: Path, own_hashes: Container[str], name: str) -> None:
    if os.path.lexists(target) and _sha256(target) not in own_hashes:
        raise Conflict(
            f"{name!r} appeared after the job was submitted, and existing files are never overwritten. "
            "The rows are kept: move that file away, then resume the job."
        )
    os.rename(source, target)


def _sha256(path: Path) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # a pipe would never end
            return hashlib.file_digest(file, "sha256").hexdigest() if is_file else ""
    except (FileNotFoundError, IsADirectoryError):
        return ""  # a folder, or a link that leads nowhere
