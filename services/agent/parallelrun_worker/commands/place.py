"""The working folder of a command: a copy of the job's code, which it may change as it likes.

As in Azure ML, what it writes below `logs` and `outputs` there is kept; all else is removed with the worker.
"""

from __future__ import annotations

import errno
import os

_COPY_BYTES = 1 << 30


def make_place(folder: str, code: str, links: dict[str, str]) -> None:
    """Create the folder for one try; that of an earlier one is removed.

    Args:
        links: from names in the folder to the folders that they lead to, unless the code has something of that name.

    Raises:
        OSError: it can't be written, or the code can't be read.
    """
    if os.path.lexists(folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    _copy_folder(code, folder)
    for name, target in links.items():
        if target and not os.path.lexists(os.path.join(folder, name)):
            os.symlink(target, os.path.join(folder, name))  # noqa: PTH211 - plain names


def _copy_folder(source: str, target: str) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            copy = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(copy)
                _copy_folder(entry.path, copy)
            else:
                _copy_file(entry.path, copy)


def _copy_file(source: str, target: str) -> None:
    """Files of the store are closed to all changes; a copy is its user's."""
    opened = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        mode = 0o755 if os.fstat(opened).st_mode & 0o100 else 0o644
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            _copy_bytes(opened, copy)
        finally:
            os.close(copy)
    finally:
        os.close(opened)


def _copy_bytes(opened: int, copy: int) -> None:
    try:
        while os.sendfile(copy, opened, None, _COPY_BYTES):
            pass
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        while data := os.read(opened, 1 << 20):  # a file system that can't hand over pages
            while data:
                data = data[os.write(copy, data) :]
