"""Folders of files to run over, created once below the temporary folder, because that takes longer than the runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """The folder of what later runs can reuse."""
    path = Path(tempfile.gettempdir()) / f"parallelrun-benchmarks-{os.getuid()}"
    path.mkdir(exist_ok=True)
    return path


def files(count: int, size_bytes: int = 0) -> Path:
    """A flat folder of this many files; files that are not empty are all different."""
    path = folder() / f"files-{count}-{size_bytes}"
    if not path.exists():
        temporary = Path(tempfile.mkdtemp(dir=folder()))
        fd = os.open(temporary, os.O_RDONLY)
        for number in range(count):
            file = os.open(f"img_{number:07d}.jpg", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd)
            if size_bytes:
                os.write(file, os.urandom(size_bytes))
            os.close(file)
        os.close(fd)
        try:
            temporary.rename(path)
        except OSError:  # another run has just created the same
            shutil.rmtree(temporary)
    return path


def again(data: Path, times: int) -> Path:
    """A folder whose sub-folders are all the same one: many paths to list, few inodes to create."""
    path = folder() / f"{data.name}-x{times}"
    path.mkdir(exist_ok=True)
    for number in range(times):
        with suppress(FileExistsError):
            (path / f"part-{number:02d}").symlink_to(data)
    return path
