"""A file of the folder of secrets that an operator has put onto a node."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from parallelrun_core.errors import NotFound
from parallelrun_core.untrusted.paths import open_beneath

MAX_BYTES: Final = 64 << 10
"""One more than twice this could not be an environment variable."""


class SecretUnusable(Exception):
    """A secret isn't there, or isn't safe; says what to do, and nothing of its content."""


def read_secret_file(folder: Path, name: str) -> bytes:
    """The content of a file below the folder, as it is now: never more than `MAX_BYTES` and one.

    Raises:
        SecretUnusable: it can't be read, or others can read the folder.
    """
    _check(folder)
    try:
        fd = open_beneath(folder, name)
    except NotFound as error:
        raise SecretUnusable(f"put it into {folder / name} (no links)") from error
    try:
        return os.read(fd, MAX_BYTES + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def _check(folder: Path) -> None:
    try:
        status = folder.stat()
    except OSError as error:
        raise SecretUnusable(f"the folder of secrets {folder}: {error.strerror}") from error
    if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid not in (0, os.geteuid()):
        message = "must belong to the user of this service and be closed to all others (chmod 700)"
        raise SecretUnusable(f"the folder {folder} {message}")
