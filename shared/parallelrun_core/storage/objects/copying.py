"""A whole object to a local file, or to memory, with as little between the store and the disk as there can be.

A small object is one request. A large one is several at the same time, as stores limit what one connection gets. A file
of a web server is always one: it may have no tag, and then several answers could be of several versions.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final

from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.trouble import StoreAway, in_plain_words
from parallelrun_core.storage.objects.web import WebAnswer, web_get

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult

_RANGE_BYTES: Final = 8 << 20
_CHUNK_BYTES: Final = 1 << 20
_AT_ONCE: Final = 8
"""Ranges of large objects, in this process."""


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "copy")


def in_threads(work: Callable[[str], object], names: Iterable[str], threads: int) -> None:
    """Ask a store about each name, in so many threads. Whoever waits for them here is seen to ask a store, too
    (`planning/apart.py` of the master).
    """
    with ThreadPoolExecutor(threads, "store") as pool:
        deque(pool.map(work, names), maxlen=0)


def copy(url: str, version: Version, fd: int, part: range | None = None) -> None:
    byte_range = part if part is not None else range(version.size_bytes)
    is_one = len(byte_range) <= 2 * _RANGE_BYTES or (part is None and address_of(url).is_web)
    if is_one:
        _copy_range(url, version, fd, byte_range, byte_range.start)
        return
    ranges = [byte_range[at : at + _RANGE_BYTES] for at in range(0, len(byte_range), _RANGE_BYTES)]
    file, copied = _Descriptor(os.dup(fd)), list[Future[None]]()
    try:
        for each in ranges:
            copied.append(_submitted(url, _copy_range_to, file, url, version, each, byte_range.start))
        for future in copied:
            future.result()
    finally:
        for future in copied:
            future.cancel()
        for future in copied:  # none may still write once the file is given up
            if not future.cancelled():
                future.exception()


class _Descriptor:
    """A descriptor that is closed once nobody has it any more: what the pool does late must not meet another file."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


def _submitted(url: str, work: Callable[..., None], *arguments: object) -> Future[None]:
    """Have the pool do something.

    Raises:
        StoreAway: the machine allows no thread more. The pool may do it nevertheless, and nobody hears of that.
    """
    try:
        return _pool().submit(work, *arguments)
    except RuntimeError as error:
        raise StoreAway(errno.EAGAIN, str(error), url) from error


def whole(url: str, version: Version) -> memoryview:
    with metered(url, "get") as call, in_plain_words(url, is_listed=True):
        content = memoryview(_answer(url, version).bytes())
        call.bytes = len(content)
    if len(content) != version.size_bytes:
        raise Replaced(f"{url} has another size than when it was listed")
    return content


def _copy_range_to(file: _Descriptor, url: str, version: Version, part: range, first: int) -> None:
    _copy_range(url, version, file.fd, part, first)


def _copy_range(url: str, version: Version, fd: int, part: range, first: int) -> None:
    """Write a part to where it belongs in a file that begins with the byte `first`.

    Piece by piece as they come: memory of that size is used again at once, while that for all of it would be new.
    """
    if not part:
        return
    with metered(url, "get") as call, in_plain_words(url, is_listed=True):
        for chunk in _answer(url, version, part).stream(min_chunk_size=_CHUNK_BYTES):
            _write(fd, chunk, part.start - first + call.bytes)
            call.bytes += len(chunk)
    if call.bytes != len(part):
        raise Replaced(f"{url} has another size than when it was listed")


def _answer(url: str, version: Version, part: range | None = None) -> GetResult | WebAnswer:
    """Return what the store gives of this version, or of these bytes of it; its content is still to come."""
    address = address_of(url)
    if part is not None and len(part) >= version.size_bytes:  # some web servers only give whole files
        part = None
    if address.is_web:
        return web_get(url, version, part)
    import obstore

    options: GetOptions = {"if_match": version.tag} if version.tag else {}
    if part is not None:
        options["range"] = (part.start, part.stop)
    return obstore.get(client_of(address.store), address.key, options=options)


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written
