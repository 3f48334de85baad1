"""Addresses of objects: the store that has one, and its key there. Nothing is opened here.

    s3://BUCKET/KEY
    gs://BUCKET/KEY
    az://CONTAINER/KEY                                   of the account that the environment names
    abfs[s]://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY
    wasb[s]://CONTAINER@ACCOUNT.blob.core.windows.net/KEY
    https://ACCOUNT.blob.core.windows.net/CONTAINER/KEY
    https://ANYWHERE/PATH                                one file of a web server
    azureml://datastores/NAME/paths/KEY                  below the folder that the definition of the datastore names

A key is text as the store has it: nothing in it is unquoted. `//`, `.` and `..` in it, in any spelling, are refused by
`untrusted/canonical.py`. Only the path of an `https:` URL is quoted, as in a browser.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from parallelrun_core.storage.globs import has_wildcard, split_pattern
from parallelrun_core.storage.location import datastore_of, in_datastore
from parallelrun_core.storage.schemes import SCHEMES, canonical_scheme
from parallelrun_core.storage.url_flaws import NO_PASSWORDS
from parallelrun_core.untrusted.canonical import canonical, check_key

_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*):/+([^/]*)/?(.*)", re.IGNORECASE | re.DOTALL)
_AZURE_HOST: Final = re.compile(r"[a-z0-9-]+\.(blob|dfs)\.core\.[a-z.]+", re.IGNORECASE)
_WEB: Final = frozenset({"http", "https"})
MAX_KEY_BYTES: Final = 1024
"""Of every store here."""


class Address(NamedTuple):
    """An object, or all those whose keys begin with `key` and '/'."""

    store: str
    """URL of the bucket, container, datastore or web server, in one spelling for all that name the same one."""
    key: str
    """Without a '/' at either end; empty for all of the store."""

    @property
    def is_web(self) -> bool:
        """Return whether it is one file of a web server, which can't be listed or written to."""
        return self.store.partition(":")[0] in _WEB and not is_azure_host(
            self.store.partition("//")[2].partition("/")[0]
        )


def is_azure_host(host: str) -> bool:
    """Return whether a web address is that of an account of Azure Storage."""
    return _AZURE_HOST.fullmatch(host) is not None


def split(url: str) -> tuple[str, list[str]]:
    """The fixed part of a URL, and the names of its pattern. A web server has none: what comes after `?` is a query."""
    parts = _URL.fullmatch(url)
    if parts is not None and parts[1].lower() in _WEB and not is_azure_host(parts[2]):
        return url, []
    return split_pattern(url) if has_wildcard(url) else (url, [])


@lru_cache(maxsize=4096)
def address_of(url: str) -> Address:
    """Return where the object of a URL is.

    Raises:
        ValueError: it names no bucket, or a key that no object can have.
    """
    if name := datastore_of(url):
        store = in_datastore(name, "").rstrip("/")
        return Address(store, _checked(url, url.removeprefix(store)))
    scheme, host, path, query = canonical(url)
    rest = path + query
    scheme = canonical_scheme(scheme)
    if scheme in _WEB:
        return _of_web(url, scheme, host, rest)
    if _is_azure(scheme):
        host = host.replace(".blob.", ".dfs.", 1)
    if not host.partition("@")[0]:
        raise ValueError(f"{url[:200]!r} names no {'container' if _is_azure(scheme) else 'bucket'}")
    return Address(f"{scheme}://{host}", _checked(url, rest))


def _is_azure(scheme: str) -> bool:
    return scheme in SCHEMES and SCHEMES[scheme].protocol == "azure"


def _of_web(url: str, scheme: str, host: str, rest: str) -> Address:
    if "@" in host:
        raise ValueError(NO_PASSWORDS)
    if not host:
        raise ValueError(f"{url[:200]!r} names no server")
    if not is_azure_host(host):
        return Address(f"{scheme}://{host}", rest)
    container, _, key = rest.partition("/")
    if not container:
        raise ValueError(f"{url[:200]!r} names no container")
    if "?" in key:
        raise ValueError(
            f"{url.partition('?')[0]!r} has a signature behind it, which would be kept with the job: leave it out, and "
            "set AZURE_STORAGE_SAS_TOKEN on the nodes"
        )
    account = host.lower().partition(".")[0]
    return Address(
        f"abfss://{container}@{account}.dfs.{host.partition('.')[2].partition('.')[2]}", _checked(url, unquote(key))
    )


def _checked(url: str, key: str) -> str:
    key = key.strip("/")
    if len(key.encode(errors="surrogateescape")) > MAX_KEY_BYTES:
        raise ValueError(f"{url[:200]!r}… is longer than the {MAX_KEY_BYTES:,} bytes that a key may have")
    check_key(key, url)
    return key
