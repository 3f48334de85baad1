"""The datastores of this process: configured once with where to look, then as they are now.

A process that nobody has configured has none.
"""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_core.datastores.bound_secrets import BoundSecrets
from parallelrun_core.datastores.credentials import StoreCredentials, read_credentials
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


class _Sources(NamedTuple):
    catalog: DatastoreCatalog
    bound: BoundSecrets
    secrets: SecretSource


class ResolvedDatastore(NamedTuple):
    """A datastore with its credentials. Equal as long as neither has changed."""

    datastore: Datastore
    credentials: StoreCredentials | None
    """None: those that this machine has, or none at all."""


class _CacheEntry(NamedTuple):
    resolved: ResolvedDatastore
    stamp: tuple[object, ...]
    read_at: float


# State of the module, as a path is all that tells a storage which datastore it is in, and storages have no state.
_SOURCES: Final[list[_Sources]] = []
_CACHE: Final[dict[str, _CacheEntry]] = {}
_LOCK: Final = threading.Lock()


def configure(root: Path, secrets: SecretSource | None = None) -> None:
    """Say where this process, and those that are forked from it, find definitions and secrets.

    Args:
        root: the cluster's root folder.
        secrets: has the credentials of datastores; None: this process has none of them.
    """
    _SOURCES[:] = [_Sources(datastore_catalog(root), BoundSecrets(root), secrets or ProcessSecrets(""))]
    _CACHE.clear()


def catalog() -> DatastoreCatalog | None:
    """The definitions, if this process was told where they are."""
    return _SOURCES[0].catalog if _SOURCES else None


def resolve(name: str) -> ResolvedDatastore:
    """A datastore with its credentials, no older than two seconds.

    Raises:
        DatastoreAway: its credentials can't be had just now.
        DatastoreUnusable: it isn't defined, or its credentials aren't here; says what to do.
    """
    cached = _CACHE.get(name)
    if cached is not None and time.monotonic() - cached.read_at < _FRESH_S:
        return cached.resolved
    with _LOCK:
        return _resolve_fresh(name)


def _resolve_fresh(name: str) -> ResolvedDatastore:
    if not _SOURCES:
        raise _unusable(name, "this process was not told where datastores are defined")
    sources, cached, now = _SOURCES[0], _CACHE.get(name), time.monotonic()
    stamp = _stamp(sources, name, cached.resolved.datastore if cached else None)
    if cached is None or cached.stamp != stamp:
        resolved = _read(sources, name)
        cached = _CacheEntry(resolved, _stamp(sources, name, resolved.datastore), now)
    _CACHE[name] = cached._replace(read_at=now)
    return cached.resolved


def _read(sources: _Sources, name: str) -> ResolvedDatastore:
    try:
        datastore = sources.catalog.get(name)
        reference = datastore.credentials
        if reference is None or datastore.anonymous:
            return ResolvedDatastore(datastore, None)
        content = sources.secrets.read(f"{OF_DATASTORES}/{reference.secret}")
        sources.bound.check(datastore)
        return ResolvedDatastore(datastore, read_credentials(datastore, content))
    except SecretUnavailable as error:
        raise DatastoreAway(errno.EIO, f"datastore {name!r}: its secret can't be read just now: {error}") from None
    except SecretUnusable as error:
        secret = datastore.credentials.secret if datastore.credentials else ""
        raise _unusable(name, f"its secret {secret!r} can't be used here: {error}") from None
    except ParallelRunError as error:
        raise _unusable(name, error.message) from error


def _unusable(name: str, why: str) -> DatastoreUnusable:
    return DatastoreUnusable(errno.ENOKEY, f"datastore {name!r}: {why}")


def _stamp(sources: _Sources, name: str, datastore: Datastore | None) -> tuple[object, ...]:
    """Return what changes with a datastore and its secret."""
    try:
        version = sources.catalog.version(name)
    except (OSError, ParallelRunError):
        version = ""
    if datastore is None or datastore.credentials is None:
        return (version,)
    return version, sources.secrets.stamp(f"{OF_DATASTORES}/{datastore.credentials.secret}")
