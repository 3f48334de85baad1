"""Clients of stores: one for each store and process, with the credentials that this machine has.

Credentials are what the stores' own tools look for (`environment.py`), or those that a datastore names
(`datastores.py`). Nothing of them is in a job, and nobody asks a client for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from parallelrun_core.datastores.registry import DatastoreAway, ResolvedDatastore, resolve
from parallelrun_core.storage.location import datastore_of, in_datastore
from parallelrun_core.storage.objects import datastores, environment
from parallelrun_core.storage.objects.redirects import staying_at
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.schemes import SCHEMES, endpoint_variables, scheme_of
from parallelrun_core.storage.url_flaws import LOOPBACK

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_CONNECT_S: Final = 5
_ANSWER_S: Final = 15
_RETRY_FOR_S: Final = 30
_ENDPOINTS: Final = endpoint_variables(*SCHEMES)

_USED_BY: list[int] = []
_OF_DATASTORES: Final[dict[str, tuple[ResolvedDatastore, ObjectStore]]] = {}
"""With what each was made from."""


class StoresMissing(OSError):
    """The library for object stores is not installed here."""


def client_of(store: str) -> ObjectStore:
    """The client of a store; the same one each time. Many threads may use it at once.

    Raises:
        StoresMissing: there is no library for it.
        StoreAway: the credentials of the datastore can't be had just now.
        NoCredentials, DatastoreUnusable: this machine has no credentials for it, or the datastore isn't defined.
        ValueError: the store's name, or what the environment says of it, can't be right.
        RuntimeError: this process was forked from one that has used a store: it would hang.
    """
    if not _USED_BY:
        _USED_BY.append(os.getpid())
    elif _USED_BY[0] != os.getpid():
        raise RuntimeError("the library for object stores doesn't survive a fork: start another process instead")
    name = datastore_of(store)
    return _of_datastore(name) if name else _make_client(store)


def present_datastore(name: str) -> ResolvedDatastore:
    """A datastore with its credentials, as they are now.

    Raises:
        StoreAway: its credentials can't be had just now.
        DatastoreUnusable: it isn't defined, or its credentials aren't here.
    """
    try:
        return resolve(name)
    except DatastoreAway as error:
        raise StoreAway(error.errno, error.strerror, in_datastore(name, "")) from error


def _of_datastore(name: str) -> ObjectStore:
    present = present_datastore(name)
    client = _OF_DATASTORES.get(name)
    if client is None or client[0] != present:
        with _refusals(f"datastore {name!r}"):
            client = present, datastores.make_client(present, _options(), _retries())
        _OF_DATASTORES[name] = client
    return client[1]


@cache
def _make_client(store: str) -> ObjectStore:
    options = _options()
    if _is_plain_http_meant(store):
        options["allow_http"] = True
    scheme, _, bucket = store.partition("://")
    row, endpoint = scheme_of(store), environment.endpoint_of(scheme)
    protocol = row.protocol if row is not None else ""
    if protocol == "gcs" or (protocol == "s3" and not environment.library_finds_credentials()):
        options = staying_at(endpoint, options)
    with _refusals(store):
        from obstore.store import AzureStore, GCSStore, S3Store, from_url

        settings: dict[str, Any] = {"client_options": options, "retry_config": _retries()}
        match protocol:
            case "s3":
                settings |= {"endpoint": endpoint} if endpoint else {}
                region, provider = environment.s3_region(), environment.s3_credentials()
                return S3Store.from_url(f"s3://{bucket}", region=region, credential_provider=provider, **settings)
            case "azure":
                has_account = bool(row and row.is_container_first)
                url = f"{'abfss' if has_account else 'az'}://{bucket}"
                return AzureStore.from_url(url, **settings, **environment.azure_options(has_account=has_account))
            case "gcs":
                return GCSStore.from_url(f"gs://{bucket}", config=environment.google_options(endpoint), **settings)
        return from_url(store, **settings)


@contextmanager
def _refusals(store: str) -> Iterator[None]:
    """Say what the library refuses, or that it isn't there."""
    try:
        from obstore.exceptions import BaseError
    except ImportError as error:
        raise StoresMissing("object stores need obstore: in the checkout, pip install '.[stores]'") from error
    try:
        yield
    except BaseError as error:
        raise ValueError(f"{store}: {str(error).partition(chr(10))[0]}") from error


def _options() -> ClientConfig:
    return {
        "connect_timeout": timedelta(seconds=_CONNECT_S),
        # Of one answer without progress; a large object may take as long as it needs.
        "read_timeout": timedelta(seconds=_ANSWER_S),
        "timeout": timedelta(days=1),
        "user_agent": "parallelrun",
    }


def _retries() -> RetryConfig:
    return {"max_retries": 10, "retry_timeout": timedelta(seconds=_RETRY_FOR_S)}


def _is_plain_http_meant(store: str) -> bool:
    """Return whether requests may go unencrypted: to this machine, or where the operator has said so."""
    if os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true"):
        return True
    urls = [store, *(os.environ.get(name, "") for name in _ENDPOINTS)]
    hosts = [urlsplit(url).hostname for url in urls if url.startswith("http://")]
    return bool(hosts) and all(host in LOOPBACK for host in hosts)


def forget() -> None:
    """Make clients anew, as when the environment has changed. For tests."""
    _make_client.cache_clear()
    _OF_DATASTORES.clear()
