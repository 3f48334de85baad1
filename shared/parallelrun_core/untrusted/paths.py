"""The ways to open a file by a path that a client or a job chose.

User code writes into the job folder, so a name in it may be a link to anywhere. `open_beneath` therefore walks
the path folder by folder without following a link; every route that serves a file uses it. `open_ordinary` is for
whoever checks where the path leads, or trusts the folder, but not that what is there is a file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from io import FileIO
from pathlib import Path, PurePosixPath

from parallelrun_core.errors import NotFound, UnsafePath

_NAME_MAX = 255


def relative_parts(text: str) -> tuple[str, ...]:
    """The parts of a relative path that stays below its root.

    Raises:
        UnsafePath: absolute, with `..`, a backslash, a NUL or a control character, or too long a name.
    """
    bad = (
        text.startswith("/")
        or "\\" in text
        or any(ord(char) < 32 or ord(char) == 127 for char in text)
        or any(part == ".." or len(part.encode(errors="surrogatepass")) > _NAME_MAX for part in text.split("/"))
    )
    parts = PurePosixPath(text).parts
    if bad or not parts:
        raise UnsafePath.at("path", f"{text[:200]!r} is not a path below its folder", "no '..', no leading '/'")
    return parts


def open_beneath(root: Path, relative: str, flags: int = os.O_RDONLY, *, mode: int = 0o600) -> int:
    """Open a file below `root` without following any link on the way; returns the file descriptor.

    Args:
        mode: of a file that is made.

    Raises:
        UnsafePath: the path leaves its root.
        NotFound: there is no such file, or there is a link on the way.
    """
    *folders, name = relative_parts(relative)
    try:
        at = os.open(root, os.O_PATH | os.O_DIRECTORY)
    except OSError as error:
        raise NotFound(f"There is no file {relative!r}.") from error
    try:
        for folder in folders:
            below = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=at)
    except (OSError, UnicodeEncodeError) as error:
        raise NotFound(f"There is no file {relative!r}.") from error
    finally:
        os.close(at)


def open_ordinary(path: str | bytes | Path) -> FileIO:
    """Open an ordinary file to read it, unbuffered. A pipe would wait for a writer for ever, and a device has no end.

    Raises:
        OSError: it can't be opened, or is no ordinary file.
    """
    file = open(path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no ordinary file", os.fsdecode(path))
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def opened_path(fd: int) -> Path:
    """Return where an open file is, without links, whatever the path by which it was opened leads to by now."""
    return Path(real_path(fd))


def real_path(fd: int) -> str:
    """Return the same as a text, for what is asked of each of many files."""
    return os.readlink(f"/proc/self/fd/{fd}")


def within(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a path, with every link followed, is one of the roots or below one."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        return False
    return any(real.is_relative_to(root.resolve()) for root in roots)
