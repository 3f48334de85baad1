"""Streams the objects below a prefix: a page as soon as the store has sent it, the next one on its way meanwhile.

Most stores list in the order of the keys' bytes, which is that of whole paths; some go folder by folder, and what comes
is then in the same order each time, but not sorted. Size and ETag come with each key, without a request of their own.
"""

from __future__ import annotations

import errno
import os
import posixpath
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Final

from parallelrun_core.storage.globs import START, Pattern, has_wildcard
from parallelrun_core.storage.interface import Page, Version
from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.storage.objects.address import Address, address_of, split
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.endpoints import check_endpoint
from parallelrun_core.storage.objects.markers import has_keys_below, is_marker, markers_in
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.parallel_listing import folders_at_once, pages_at_once
from parallelrun_core.storage.objects.reading import present_version, version_of
from parallelrun_core.storage.objects.trouble import Missing, StoreError, in_plain_words

if TYPE_CHECKING:
    from obstore import ListStream, ObjectMeta

PAGE: Final = 1000
"""As many keys as a store sends at once."""
_AHEAD: Final = 4
"""Pages that are fetched ahead of whoever reads them."""
_ASKED_AT_ONCE: Final = 32
"""Empty objects of a page."""


class ObjectListing:
    """The objects of one input, in pages (see `interface.Listing`).

    Args:
        url: a prefix, an object, or a pattern.
        below: names below the prefix, with wildcards; then `url` itself is taken literally.
    """

    def __init__(self, url: str, below: Sequence[str] = ()) -> None:
        self._url, self._names = (url, list(below)) if below else split(url)
        self._pattern = Pattern(self._names) if self._names else None
        self.markers = LeftoverNames()
        self.versions: Sequence[Version] | None = None
        self.is_sorted = True
        self._last = ""

    def __iter__(self) -> Iterator[Page]:
        address = address_of(self._url)
        if not address.is_web:
            check_endpoint(address.store, self._url)
        if self._names and "[" in self._names[0]:
            self._take_literally()
            address = address_of(self._url)
        if self._pattern is None and (one := self._object(address)) is not None:
            folder, _, name = self._url.rpartition("/")
            self.versions = [one]
            yield os.fsencode(folder), [os.fsencode(name)]
            return
        if address.is_web:
            raise Missing(2, "a web server has no folders: name each file", self._url)
        for page in _ahead(self._pages(address)):
            if not (metas := self._files_of(address.store, page)):
                continue
            # Of millions of keys, each call in Python for each one is a part of a minute.
            keys = [meta["path"] for meta in metas]
            if address.key and address.key in keys:
                metas = self._below(address, metas)
                keys = [meta["path"] for meta in metas]
            if not keys:
                continue
            self._note_order(keys)
            folders = [key.rpartition("/")[0] for key in keys]
            for folder, group in groupby(range(len(keys)), folders.__getitem__):
                numbers = list(group)
                chosen = self._chosen(address, folder, metas[numbers[0] : numbers[-1] + 1])
                if chosen:
                    self.versions = list(map(version_of, chosen))
                    at = len(folder) + 1 if folder else 0
                    place = f"{address.store}/{folder}" if folder else address.store
                    yield os.fsencode(place), _encoded([meta["path"][at:] for meta in chosen])

    def _take_literally(self) -> None:
        """Take names with brackets as they are, as far as an object or a folder has exactly such a name."""
        while self._names and "[" in self._names[0]:
            url = f"{self._url.rstrip('/')}/{self._names[0]}"
            address = address_of(url)
            if not (has_keys_below(url, address) or (len(self._names) == 1 and single(url, address) is not None)):
                return
            start, self._names = url, self._names[1:]
            while self._names and not has_wildcard(self._names[0]):
                start, self._names = f"{start}/{self._names[0]}", self._names[1:]
            self._url = start
            self._pattern = Pattern(self._names) if self._names else None

    def _object(self, address: Address) -> Version | None:
        """Return the version of the object that is meant; None: a folder is. A URL that ends in a slash is one."""
        if self._url.endswith("/") and not address.is_web:
            return None
        one = single(self._url, address)
        if one is None or address.is_web or not is_marker(self._url, address, one):
            return one
        self.markers.add(os.fsencode(self._url.rpartition("/")[2]))
        return None

    def _files_of(self, store: str, page: Sequence[ObjectMeta]) -> Sequence[ObjectMeta]:
        """Return those of a page that are files; what marks a folder is none."""
        files = _files_of(store, page)
        empty = [meta["path"] for meta in files if not meta["size"]]
        if not empty:
            return files
        keys = [meta["path"] for meta in page]
        markers = markers_in(store, page, empty, is_sorted=self.is_sorted and keys == sorted(keys))
        for key in sorted(markers):
            self.markers.add(os.fsencode(key))
        return [meta for meta in files if meta["path"] not in markers]

    def _below(self, address: Address, metas: Sequence[ObjectMeta]) -> Sequence[ObjectMeta]:
        """Return the entries without the object of the folder's own name with a '/' behind it; no pattern matches it.

        Raises:
            StoreError: without a pattern, it would be left out although it has content.
        """
        for meta in metas:
            if meta["path"] == address.key and self._pattern is None:
                message = (
                    f"an object of {meta['size']:,} bytes has a key that ends in '/', as no file can: rename it, or "
                    "leave it out by a pattern such as **"
                )
                raise StoreError(errno.EINVAL, message, f"{address.store}/{address.key}/")
        return [meta for meta in metas if meta["path"] != address.key]

    def _note_order(self, keys: list[str]) -> None:
        # Sorting what is sorted costs next to nothing; code points have the order of their UTF-8.
        if self._last > keys[0] or keys != sorted(keys):
            self.is_sorted = False
        self._last = keys[-1]

    def _chosen(self, address: Address, folder: str, metas: Sequence[ObjectMeta]) -> Sequence[ObjectMeta]:
        """Return the entries that the pattern matches."""
        if self._pattern is None:
            return metas
        states = START
        for name in folder[len(address.key) :].strip("/").split("/") if folder != address.key else ():
            states = self._pattern.enter(states, os.fsencode(name))
        pattern = self._pattern
        return [meta for meta in metas if pattern.is_match(states, os.fsencode(posixpath.basename(meta["path"])))]

    def _pages(self, address: Address) -> Iterator[Sequence[ObjectMeta]]:
        import obstore

        client = client_of(address.store)

        def pages_of(folder: str, after: str) -> Iterator[Sequence[ObjectMeta]]:
            with in_plain_words(self._url):
                pages: ListStream[Sequence[ObjectMeta]] = obstore.list(
                    client, folder or None, offset=after or None, chunk_size=PAGE
                )
            page: Sequence[ObjectMeta] | None = None
            while page is None or page:
                with metered(self._url, "list") as call, in_plain_words(self._url):
                    before, page = page, next(pages, ())
                    if before is not None and not page:
                        call.requests = 0  # the page before it was the last one
                if page:
                    yield page

        at_once = folders_at_once(address.store)
        return pages_at_once(pages_of, address.key, at_once) if at_once > 1 else pages_of(address.key, "")


def _encoded(names: list[str]) -> list[bytes]:
    """`os.fsencode` of each, in one call: no key has a NUL, which XML can't say."""
    return os.fsencode("\0".join(names)).split(b"\0")


def single(url: str, address: Address) -> Version | None:
    """The version of the object that has exactly this key; None if there is none, as of a prefix."""
    if not address.key and not address.is_web:
        return None
    try:
        return present_version(url, address)
    except Missing:
        return None


def _files_of(store: str, page: Sequence[ObjectMeta]) -> Sequence[ObjectMeta]:
    """Return the entries that are files: consoles create an empty `folder/` for a folder, and the library leaves out
    the '/'.

    Each empty object takes a request, so these are made together.

    Raises:
        StoreError: two objects with content would have the same path here.
    """
    empty = [meta["path"] for meta in page if not meta["size"]]
    if empty:
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(empty)), "empty-objects") as pool:
            versions = pool.map(lambda key: single(f"{store}/{key}", Address(store, key)), empty)
            files = {key for key, version in zip(empty, versions, strict=True) if version and not version.size_bytes}
        page = [meta for meta in page if meta["size"] or meta["path"] in files]
    by_path = {meta["path"]: meta for meta in reversed(page)}
    if len(by_path) == len(page):
        return page
    if twice := next((meta for meta in page if meta["size"] and by_path[meta["path"]] is not meta), None):
        message = "there is an object of this name, and another one with a '/' behind it: rename either"
        raise StoreError(errno.EINVAL, message, f"{store}/{twice['path']}")
    return list(by_path.values())[::-1]


def _ahead(pages: Iterator[Sequence[ObjectMeta]]) -> Iterator[Sequence[ObjectMeta]]:
    """Yield the pages, fetched by a thread of its own while earlier ones are read."""
    first = next(pages, None)
    if first is None:
        return
    if len(first) < PAGE:  # nearly always all of it
        yield first
        yield from pages
        return
    fetched: queue.Queue[Sequence[ObjectMeta] | BaseException | None] = queue.Queue(_AHEAD)
    is_left = threading.Event()

    def fetch() -> None:
        end: BaseException | None = None
        try:
            for page in pages:
                fetched.put(page)
                if is_left.is_set():
                    return
        except BaseException as error:
            end = error
        fetched.put(end)

    threading.Thread(target=fetch, name="listing", daemon=True).start()
    try:
        yield first
        while (page := fetched.get()) is not None:
            if isinstance(page, BaseException):
                raise page
            yield page
    finally:
        is_left.set()
        while not fetched.empty():
            fetched.get_nowait()  # makes room for what the thread has in hand
