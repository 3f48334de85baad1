"""Clients of stores: one for each store and process, with the credentials that this machine has.

Credentials are what the stores' own tools look for: environment variables, the role of the machine, workload identity.
Nothing of them is in a job, and nobody asks a client for them.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from obstore.store import ClientConfig, GCSConfig, ObjectStore, RetryConfig

_CONNECT_S: Final = 5
_ANSWER_S: Final = 30
_RETRY_FOR_S: Final = 60
_GOOGLE_ENDPOINT: Final = "STORAGE_EMULATOR_HOST"
"""As Google's own libraries have it: URL of a store that wants no credentials."""
_ENDPOINTS: Final = (
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT",
    _GOOGLE_ENDPOINT,
)  # fmt: skip
_NOBODY: Final = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
"""What the library takes for the account of somebody who needs none."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_USED_BY: list[int] = []


class StoresMissing(OSError):
    """The library for object stores is not installed here."""


def client_of(store: str) -> ObjectStore:
    """The client of a store; the same one each time. Many threads may use it at once.

    Raises:
        StoresMissing: there is no library for it.
        ValueError: the store's name, or what the environment says of it, can't be right.
        RuntimeError: this process was forked from one that has used a store: it would hang.
    """
    if not _USED_BY:
        _USED_BY.append(os.getpid())
    elif _USED_BY[0] != os.getpid():
        raise RuntimeError("the library for object stores doesn't survive a fork: start another process instead")
    return _made(store)


@cache
def _made(store: str) -> ObjectStore:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import HTTPStore, from_url
    except ImportError as error:
        raise StoresMissing("object stores need the package obstore: pip install 'parallelrun[stores]'") from error
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=_CONNECT_S),
        # Of one answer without progress; a large object may take as long as it needs.
        "read_timeout": timedelta(seconds=_ANSWER_S),
        "timeout": timedelta(days=1),
        "user_agent": "parallelrun",
    }
    if _is_plain_http_meant(store):
        options["allow_http"] = True
    where: GCSConfig = {}
    if store.startswith("gs://") and (emulator := os.environ.get(_GOOGLE_ENDPOINT)):
        url = emulator if "://" in emulator else f"http://{emulator}"
        where["service_account_key"] = json.dumps({**_NOBODY, "gcs_base_url": url.rstrip("/")})
    retries: RetryConfig = {"max_retries": 10, "retry_timeout": timedelta(seconds=_RETRY_FOR_S)}
    try:
        if store.startswith(("http://", "https://")):
            return HTTPStore.from_url(store, client_options=options, retry_config=retries)
        return from_url(store, config=where, client_options=options, retry_config=retries)
    except BaseError as error:
        raise ValueError(f"{store}: {str(error).partition(chr(10))[0]}") from error


def _is_plain_http_meant(store: str) -> bool:
    """Whether requests may go unencrypted: to this machine, or where the operator has said so."""
    if os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true"):
        return True
    given = [store, *(os.environ.get(name, "") for name in _ENDPOINTS)]
    hosts = [urlsplit(url).hostname for url in given if url.startswith("http://")]
    return bool(hosts) and all(host in _LOOPBACK for host in hosts)


def forget() -> None:
    """Make clients anew, as when the environment has changed. For tests."""
    _made.cache_clear()
