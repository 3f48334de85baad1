"""A local folder with a file for each secret, for the service's user alone. A file that is changed counts at once."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from parallelrun_core.errors import NotFound
from parallelrun_core.service.secret_source import MAX_BYTES, SecretSource, SecretUnusable
from parallelrun_core.untrusted.paths import open_beneath


class SecretFolder(SecretSource):
    """A folder, which must be closed to all others. Nothing of it is kept."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._folder = Path(place)

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


SOURCE: Final = SecretFolder
