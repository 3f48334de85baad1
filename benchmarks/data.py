"""Folders of files to run over, created once below the temporary folder, because that takes longer than the runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """The folder of what later runs can reuse."""
    path = Path(tempfile.gettempdir()) / f"parallelrun-benchmarks-{os.getuid()}"
    path.mkdir(exist_ok=True)
    return path


def cached(name: str, write: Callable[[Path], object]) -> Path:
    """The file or folder of a name that later runs reuse. Several runs may be at work at once.

    Args:
        write: writes what is not there yet, at the path that it is called with.
    """
    path = folder() / name
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder()) as temporary:
            whole = Path(temporary, "whole")
            write(whole)
            try:
                whole.rename(path)
            except OSError:
                if not path.exists():  # or another run has just created the same
                    raise
    return path


def files(count: int, size_bytes: int = 0) -> Path:
    """A flat folder of this many files; files that are not empty are all different."""

    def write(path: Path) -> None:
        path.mkdir()
        fd = os.open(path, os.O_RDONLY)
        for number in range(count):
            file = os.open(f"img_{number:07d}.jpg", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd)
            if size_bytes:
                os.write(file, os.urandom(size_bytes))
            os.close(file)
        os.close(fd)

    return cached(f"files-{count}-{size_bytes}", write)


def again(data: Path, times: int) -> Path:
    """A folder whose sub-folders are all the same one: many paths to list, few inodes to create."""
    path = folder() / f"{data.name}-x{times}"
    path.mkdir(exist_ok=True)
    for number in range(times):
        with suppress(FileExistsError):
            (path / f"part-{number:02d}").symlink_to(data)
    return path
