"""The source of a service's secrets: one for those of jobs, of datastores and of webhooks.

Another source than a folder, such as a vault, is a class with `read` and `stamp`, and a line in `_SOURCES`: services,
nodes and deliveries pass on the one setting that names it. What else it needs comes from variables that do not begin
with `PARALLELRUN_`. Deliveries and `parallelrun up` pass these on; a provisioner has none for its nodes, which have
what their image, their volumes or their machine gives them. Of those that let their owner in, no script is told.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from parallelrun_core.errors import NotFound
from parallelrun_core.untrusted.paths import open_beneath

MAX_BYTES: Final = 64 << 10
"""One more than twice this could not be an environment variable."""
SETTING: Final = "PARALLELRUN_SECRETS_DIR"
_URL: Final = re.compile("([A-Za-z][A-Za-z0-9+.-]*)://")


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


class _NoSecrets:
    def read(self, name: str) -> bytes:
        raise SecretUnusable(
            f"give this service a folder of secrets (--secrets-dir, {SETTING}), and put it there as {name}"
        )

    def stamp(self, name: str) -> object:
        return None


class _Folder:
    """A local folder for this service's user alone, with a file for each secret."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

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


class _Source(NamedTuple):
    opened: Callable[[str], SecretSource]
    credentials: tuple[str, ...] = ()
    """Beginnings of the variables that let their owner in, such as `VAULT_TOKEN`."""


_SOURCES: Final = {"": _Source(_Folder)}
"""By the scheme of its URL; what has none is a folder."""
CREDENTIALS: Final = tuple(name for source in _SOURCES.values() for name in source.credentials)
"""What the variables begin with that are kept from scripts."""


def secret_source(place: str) -> SecretSource:
    """Return the source that a service's settings name.

    Args:
        place: `secrets_dir` of the settings; empty: this service has no secrets.

    Raises:
        ValueError: there is no source of its scheme.
    """
    return _SOURCES[_scheme(checked(place))].opened(place) if place else _NoSecrets()


def checked(place: str) -> str:
    """Return the place itself.

    Raises:
        ValueError: there is no source of its scheme.
    """
    if (scheme := _scheme(place)) not in _SOURCES:
        schemes = ", ".join(["a folder", *(f"{each}://…" for each in _SOURCES if each)])
        raise ValueError(f"there is no source of secrets with {scheme}://: name one of these: {schemes}")
    return place


def absolute(place: str) -> str:
    """Return `secrets_dir` as processes with another current folder need it."""
    return os.path.abspath(place) if place and is_folder(place) else place


def is_folder(place: str) -> bool:
    return not _scheme(place)


def setting_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that names the source in an environment, if there is one, for other processes."""
    place = environment.get(SETTING)
    return {SETTING: absolute(place)} if place else {}


def _scheme(place: str) -> str:
    return found[1] if (found := _URL.match(place)) else ""
