"""A file system that loses what was not synced: what is left of a folder after a power cut, in both bad cases.

A power cut may lose names that were not synced with their folder. Or it leaves the names and loses the content of files
that were not synced, as XFS does. A real one does anything in between; what survives both survives it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch


class PowerCut:
    """Follows what is synced below a folder; use `watched`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._kinds: dict[int, bool] = {root.stat().st_ino: True}
        for path in [root, *root.rglob("*")]:
            self._note(path)

    def synced(self, fd: int) -> None:
        """Take over what an fsync has made durable."""
        self._note(Path(os.readlink(f"/proc/self/fd/{fd}")))

    def names_left(self, target: Path) -> None:
        """Write what is left if names and contents that were not synced are lost."""
        self._write(self._root.stat().st_ino, target)

    def contents_lost(self, target: Path) -> None:
        """Write what is left if all names are there, and contents that were not synced are empty."""
        shutil.copytree(self._root, target, symlinks=True)
        for path in self._root.rglob("*"):
            if path.is_file():
                (target / path.relative_to(self._root)).write_bytes(self._contents.get(path.stat().st_ino, b""))

    def _note(self, path: Path) -> None:
        inode = path.stat().st_ino
        self._kinds[inode] = path.is_dir()
        if path.is_dir():
            self._names[inode] = {each.name: each.stat().st_ino for each in path.iterdir()}
            self._kinds |= {each.stat().st_ino: each.is_dir() for each in path.iterdir()}
        else:
            self._contents[inode] = path.read_bytes()

    def _write(self, inode: int, target: Path) -> None:
        if self._kinds[inode]:
            target.mkdir()
            for name, each in self._names.get(inode, {}).items():
                self._write(each, target / name)
        else:
            target.write_bytes(self._contents.get(inode, b""))


@contextmanager
def watched(root: Path) -> Iterator[PowerCut]:
    """Follow what is synced below a folder while this lasts."""
    disk = PowerCut(root)
    fsync: Callable[[int], None] = os.fsync

    def noted(fd: Any) -> None:
        fsync(fd)
        disk.synced(fd if isinstance(fd, int) else fd.fileno())

    with patch("os.fsync", noted), patch("os.fdatasync", noted):
        yield disk
