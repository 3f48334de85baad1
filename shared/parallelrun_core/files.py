"""Files and names that survive a power cut, and files that have two names where the file system lets them."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS})


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a synced file whose name is lost is lost, too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_once(path: Path, data: bytes) -> None:
    """Create a file with all its content at once, durably; the first writer wins.

    Raises:
        FileExistsError: another was first; its file is durable, too.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        finally:
            sync_folder(path.parent)  # also when another was first: it may have been killed before it did so
    finally:
        beside.unlink(missing_ok=True)


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Let a file have another name, or a durable copy where the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if not has_no_links(error):
            raise
        shutil.copy2(source, target, follow_symlinks=False)
        if not Path(target).is_symlink():
            sync_file(Path(target))


def has_no_links(error: OSError) -> bool:
    """Whether a link could not be made because this file system has none, or no more for this file."""
    return error.errno in _NO_LINKS
