"""The check that an endpoint that somebody has named is that of a store: a console's port answers everything with a
page.

A store's library takes such a page for an object, or for an empty folder. So the endpoint is asked once, without
credentials, for what a store answers in XML or JSON, be it a refusal.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import Final

from parallelrun_core.storage.location import datastore_of
from parallelrun_core.storage.objects.clients import present_datastore
from parallelrun_core.storage.objects.environment import endpoint_of
from parallelrun_core.storage.objects.trouble import NOT_A_STORE, StoreError
from parallelrun_core.storage.objects.web import first_bytes

_HEAD_BYTES: Final = 512
_PAGES: Final = (b"<!doctype html", b"<html")


def check_endpoint(store: str, url: str) -> None:
    """Make sure that a store whose endpoint somebody has named doesn't answer with web pages.

    Args:
        url: what is to be read, for the error.

    Raises:
        StoreError: it does.
    """
    endpoint = _endpoint_of(store)
    if endpoint.startswith(("http://", "https://")) and _is_web_page(f"{endpoint.rstrip('/')}/{_bucket_of(store)}"):
        raise StoreError(errno.EPROTO, f"{endpoint}: {NOT_A_STORE}", url)


def _endpoint_of(store: str) -> str:
    if name := datastore_of(store):
        return str(getattr(present_datastore(name).datastore, "endpoint", ""))
    return endpoint_of(store.partition(":")[0])


def _bucket_of(store: str) -> str:
    return "" if datastore_of(store) else store.partition("://")[2].partition("@")[0]


@cache
def _is_web_page(url: str) -> bool:
    """Return whether a server answers a listing of a bucket with a page for people."""
    head = first_bytes(f"{url}?list-type=2&max-keys=1", _HEAD_BYTES, "application/xml")
    return head.lstrip().lower().startswith(_PAGES)
