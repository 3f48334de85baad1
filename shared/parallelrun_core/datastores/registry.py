"""The datastores that this process knows: told once, when it starts, where to look; then as they are now.

A process that nobody has told knows none.
"""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_core.datastores.bound_secrets import BoundSecrets
from parallelrun_core.datastores.credentials import Found, read_credentials
from parallelrun_core.datastores.definition import OF_DATASTORES, Datastore
from parallelrun_core.datastores.document import DatastoreCatalog, datastore_catalog
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_source import SecretSource, SecretUnavailable, SecretUnusable

_FRESH_S: Final = 2.0
"""How long what was read is used without asking whether it has changed."""


class DatastoreUnusable(OSError):
    """A datastore isn't defined, or its credentials aren't here; `strerror` says what to do."""


class DatastoreAway(DatastoreUnusable):
    """The credentials of a datastore can't be had just now: asked again, they may be there."""


class _Place(NamedTuple):
    catalog: DatastoreCatalog
    bound: BoundSecrets
    secrets: SecretSource


class Known(NamedTuple):
    """A datastore with its credentials. Equal as long as neither has changed."""

    datastore: Datastore
    credentials: Found | None
    """None: those that this machine has, or none at all."""


class _Read(NamedTuple):
    known: Known
    stamp: tuple[object, ...]
    read_at: float


_PLACES: Final[list[_Place]] = []
_READ: Final[dict[str, _Read]] = {}
_LOCK: Final = threading.Lock()


def use(root: Path, secrets: SecretSource | None = None) -> None:
    """Say where this process, and those that are forked from it, find definitions and secrets.

    Args:
        root: the cluster's root folder.
        secrets: has the credentials of datastores; None: this process has none of them.
    """
    _PLACES[:] = [_Place(datastore_catalog(root), BoundSecrets(root), secrets or ProcessSecrets(""))]
    _READ.clear()


def catalog() -> DatastoreCatalog | None:
    """The definitions, if this process was told where they are."""
    return _PLACES[0].catalog if _PLACES else None


def known(name: str) -> Known:
    """A datastore with its credentials, no older than two seconds.

    Raises:
        DatastoreAway: its credentials can't be had just now.
        DatastoreUnusable: it isn't defined, or its credentials aren't here; says what to do.
    """
    read = _READ.get(name)
    if read is not None and time.monotonic() - read.read_at < _FRESH_S:
        return read.known
    with _LOCK:
        return _asked(name)


def _asked(name: str) -> Known:
    if not _PLACES:
        raise _unusable(name, "this process was not told where datastores are defined")
    place, read, now = _PLACES[0], _READ.get(name), time.monotonic()
    stamp = _stamp(place, name, read.known.datastore if read else None)
    if read is None or read.stamp != stamp:
        present = _read(place, name)
        read = _Read(present, _stamp(place, name, present.datastore), now)
    _READ[name] = read._replace(read_at=now)
    return read.known


def _read(place: _Place, name: str) -> Known:
    try:
        datastore = place.catalog.get(name)
        reference = datastore.credentials
        if reference is None or datastore.anonymous:
            return Known(datastore, None)
        content = place.secrets.read(f"{OF_DATASTORES}/{reference.secret}")
        place.bound.check(datastore)
        return Known(datastore, read_credentials(datastore, content))
    except SecretUnavailable as error:
        raise DatastoreAway(errno.EIO, f"datastore {name!r}: its secret can't be read just now: {error}") from None
    except SecretUnusable as error:
        secret = datastore.credentials.secret if datastore.credentials else ""
        raise _unusable(name, f"its secret {secret!r} can't be used here: {error}") from None
    except ParallelRunError as error:
        raise _unusable(name, error.message) from error


def _unusable(name: str, why: str) -> DatastoreUnusable:
    return DatastoreUnusable(errno.ENOKEY, f"datastore {name!r}: {why}")


def _stamp(place: _Place, name: str, datastore: Datastore | None) -> tuple[object, ...]:
    """Return what changes with a datastore and its secret."""
    try:
        version = place.catalog.version(name)
    except (OSError, ParallelRunError):
        version = ""
    if datastore is None or datastore.credentials is None:
        return (version,)
    return version, place.secrets.stamp(f"{OF_DATASTORES}/{datastore.credentials.secret}")
