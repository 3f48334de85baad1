"""Durable writes, and hard links with a copy fallback."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def sync_folder(folder: Path | str) -> None:
    """Make the names in a folder durable: a synced file whose name is lost is lost, too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_tree(folder: Path) -> None:
    """Make a folder durable with all that is in it."""
    for current, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_file(Path(current) / name)
        sync_folder(Path(current))


def write_new(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Create a file in a folder that nobody else knows; its content is durable, its name once the folder is synced."""
    _write(path, data, mode, durably=True)


def write_once(path: Path | str, data: bytes, *, mode: int = 0o666, durable: bool = True) -> None:
    """Create a file with all its content at once; the first writer wins.

    Args:
        durable: False: others see it, whole, but a power cut may take it.

    Raises:
        FileExistsError: another was first; its file is as durable.
    """
    with _written_beside(path, data, mode, durably=True) as beside:
        try:
            os.link(beside, path)
        finally:
            if durable:
                sync_folder(_folder_of(path))  # also when another was first: who may have been killed before


def link_once(source: Path | str, target: Path | str) -> None:
    """Give a file, whose content is durable, one more name, durably; the first writer of that name wins.

    Raises:
        FileExistsError: another was first; its file is as durable.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    finally:
        sync_folder(_folder_of(target))  # also when another was first: who may have been killed before


def replace_durably(path: Path | str, data: bytes, *, mode: int = 0o666) -> None:
    """Write a whole file, durably: a power cut leaves either the old or the new one.

    The new content is synced before it gets the name. The other way round, a file system may make the name durable
    first (XFS, and ext4 without `auto_da_alloc`), and a power cut in between leaves an empty file in place of both.
    """
    with _written_beside(path, data, mode, durably=True) as beside:
        os.replace(beside, path)
    sync_folder(_folder_of(path))


def replace_file(path: Path | str, data: bytes, *, mode: int = 0o666) -> None:
    """Write a whole file, so that readers see either the old or the new one, for what can be made again.

    A power cut may lose both; see `replace_durably`.
    """
    with _written_beside(path, data, mode, durably=False) as beside:
        os.replace(beside, path)


def _folder_of(path: Path | str) -> str:
    return os.path.dirname(path) or os.curdir


@contextmanager
def _written_beside(path: Path | str, data: bytes, mode: int, *, durably: bool) -> Iterator[str]:
    """A file with this content beside a path, under a name of its own; gone afterwards."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{secrets.token_hex(6)}")
    try:
        _write(beside, data, mode, durably=durably)
        yield beside
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def _write(path: Path | str, data: bytes, mode: int, *, durably: bool) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
        if durably:
            file.flush()
            os.fsync(file.fileno())


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Give a file another name, or a durable copy where the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if not has_no_links(error):
            raise
        shutil.copy2(source, target, follow_symlinks=False)
        if not Path(target).is_symlink():
            sync_file(Path(target))


def has_no_links(error: OSError) -> bool:
    """Return whether a link could not be made because this file system has none, or no more for this file."""
    return error.errno in _NO_LINKS
