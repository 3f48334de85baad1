"""A whole object to a local file, with as little between the store and the disk as there can be.

A small object is one request. A large one is several at the same time, as stores limit what one connection gets.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final

from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.trouble import in_plain_words

if TYPE_CHECKING:
    from obstore import GetOptions

_RANGE_BYTES: Final = 8 << 20
_AT_ONCE: Final = 8
"""Ranges of large objects, in this process: each is in memory."""


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "copy")


def copy(url: str, version: Version, fd: int) -> None:
    """See `interface.Storage.copy`."""
    size = version.size_bytes
    if size <= 2 * _RANGE_BYTES:
        _copy_range(url, version, fd, 0, size)
        return
    starts = range(0, size, _RANGE_BYTES)
    copied = [_pool().submit(_copy_range, url, version, fd, start, min(start + _RANGE_BYTES, size)) for start in starts]
    try:
        for each in copied:
            each.result()
    finally:
        for each in copied:
            each.cancel()
        for each in copied:  # none may still write once the file is given up
            if not each.cancelled():
                each.exception()


def _copy_range(url: str, version: Version, fd: int, start: int, end: int) -> None:
    import obstore

    if start == end:
        return
    address = address_of(url)
    options: GetOptions = {"if_match": version.tag} if version.tag else {}
    if end - start < version.size_bytes:
        options["range"] = (start, end)
    with in_plain_words(url):
        data = obstore.get(client_of(address.store), address.key, options=options).bytes()
    if len(data) != end - start:
        raise Replaced(f"{url} has another size than when it was listed")
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, start)
        view, start = view[written:], start + written
