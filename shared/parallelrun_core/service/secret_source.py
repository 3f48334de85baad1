"""The source of a service's secrets: one for those of jobs, of datastores and of webhooks.

Another source than a folder is a class with `read` and `stamp`, and a line in `secret_source`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, Protocol

from parallelrun_core.errors import NotFound
from parallelrun_core.untrusted.paths import open_beneath

MAX_BYTES: Final = 64 << 10
"""One more than twice this could not be an environment variable."""


class SecretUnusable(Exception):
    """A secret isn't there, or isn't safe; says what to do, and nothing of its content."""


class SecretSource(Protocol):
    """The secrets of this service, by names such as `db/password`.

    Neither method may wait for a network: services ask on threads that others wait for, an agent on its only one.
    """

    def read(self, name: str) -> bytes:
        """Return the content of a secret, as it is now: never more than `MAX_BYTES` and one.

        Raises:
            SecretUnusable: it can't be had.
        """

    def stamp(self, name: str) -> object:
        """Return what is another value once the secret has changed; reads nothing of it, and raises nothing."""


def secret_source(folder: Path | None) -> SecretSource:
    """Return the source that a service's settings name.

    Args:
        folder: `secrets_dir` of the settings; None: this service has no secrets.
    """
    return _NoSecrets() if folder is None else _Folder(folder)


class _NoSecrets:
    def read(self, name: str) -> bytes:
        folder = "give this service a folder of secrets (--secrets-dir, PARALLELRUN_SECRETS_DIR)"
        raise SecretUnusable(f"{folder}, and put it there as {name}")

    def stamp(self, name: str) -> object:
        return None


class _Folder:
    """A local folder for this service's user alone, with a file for each secret."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes:
        self._check()
        try:
            fd = open_beneath(self._folder, name)
        except NotFound as error:
            raise SecretUnusable(f"put it into {self._folder / name} (no links)") from error
        try:
            return os.read(fd, MAX_BYTES + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        except OSError as error:
            raise SecretUnusable(f"{self._folder / name} can't be read: {error.strerror}") from error
        finally:
            os.close(fd)

    def stamp(self, name: str) -> object:
        try:
            status = os.stat(self._folder / name, follow_symlinks=False)
        except OSError as error:
            return error.errno
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _check(self) -> None:
        try:
            status = self._folder.stat()
        except OSError as error:
            raise SecretUnusable(f"the folder of secrets {self._folder}: {error.strerror}") from error
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid not in (0, os.geteuid()):
            message = "must belong to the user of this service and be closed to all others (chmod 700)"
            raise SecretUnusable(f"the folder {self._folder} {message}")
