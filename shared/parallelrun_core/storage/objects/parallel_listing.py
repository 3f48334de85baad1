"""Lists large folders at the same time, and yields their keys in the order in which one listing would have them.

A store answers with a page of keys at a time, and whoever asks for the next one waits for it: of twenty million keys,
that is an hour. A scout reads the pages. Where two in a row are from one folder, it leaves the rest of that folder to a
listing of its own, and goes on behind it: no page is asked for twice. Many small folders, and a single flat one, are
listed as ever.

This takes a store that lists in the order of keys, and starts after any name that it is given.
"""

from __future__ import annotations

import errno
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from parallelrun_core.storage.objects.environment import endpoint_of
from parallelrun_core.storage.objects.trouble import StoreError
from parallelrun_core.storage.schemes import scheme_of

Key = dict[str, Any]
Pages = Callable[[str, str], Iterator[Sequence[Any]]]
"""The pages of a folder (empty: all there is), beginning after a key (empty: at the first)."""

_AT_ONCE: Final = 8
_OF_DIRECTORIES: Final = "--x-s3"
_BEHIND: Final = "~~~~~~~~"
"""After all names but those that begin with letters of other alphabets: the scout drops these."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9 _./=+@,:()!'-]*")
"""Keys that mean the same wherever a store, or a library, expects a name to be quoted."""
_BUFFERED: Final = 4
"""Pages of each folder that are there before it is their turn."""
_LOOK_S: Final = 0.2
_NO_ORDER: Final = "this store doesn't list in the order of keys: masters need PARALLELRUN_LIST_AT_ONCE=1 for it"

T = TypeVar("T")


def folders_at_once(store: str) -> int:
    """Return how many folders of a store are listed at the same time.

    More than one only where keys are known to come in order, and to begin after any name: at Amazon and at Google. Of
    what speaks their protocols, some walk folder by folder: `PARALLELRUN_LIST_AT_ONCE` is for those that don't.
    """
    row = scheme_of(store)
    if row is None or not row.lists_in_order:  # Azure's protocol can't begin after a name
        return 1
    if store.endswith(_OF_DIRECTORIES):  # these have no order, and begin after no name
        return 1
    setting = os.environ.get("PARALLELRUN_LIST_AT_ONCE", "")
    if setting.isdecimal():
        return max(1, int(setting))
    return 1 if endpoint_of(store.partition(":")[0]) else _AT_ONCE


def pages_at_once(pages_of: Pages, folder: str, at_once: int) -> Iterator[Sequence[Any]]:
    """The pages of all below a folder.

    Args:
        pages_of: lists; its pages have keys as `{"path": …}`.
        at_once: how many folders are listed beside the scout.

    Raises what `pages_of` raises, in its place.

    Raises:
        StoreError: keys don't come in order, or not after the one that was named: some would come twice, or never.
    """
    listing = _Listing(lambda folder, after: _in_order(pages_of(folder, after), after), at_once)
    listing.start(listing.scouted(folder), listing.order)
    try:
        yield from _unfolded(listing.order)
    finally:
        listing.is_left.set()


def _in_order(pages: Iterator[Sequence[Any]], last: str) -> Iterator[Sequence[Any]]:
    for page in pages:
        keys = [key["path"] for key in page]  # code points have the order of their UTF-8
        if keys and (keys[0] <= last or keys != sorted(keys)):
            raise StoreError(errno.EPROTO, _NO_ORDER, keys[0])
        last = keys[-1] if keys else last
        yield page


def _unfolded(order: queue.Queue[Any]) -> Iterator[Sequence[Any]]:
    while (item := order.get()) is not None:
        if isinstance(item, queue.Queue):
            yield from _unfolded(item)
        elif isinstance(item, BaseException):
            raise item
        else:
            yield item


class _Listing:
    def __init__(self, pages_of: Pages, at_once: int) -> None:
        self.is_left = threading.Event()
        """Nobody reads any more."""
        self.order: queue.Queue[Any] = queue.Queue(2 * at_once)
        """Pages, and queues of pages, in the order of their keys."""
        self._pages_of = pages_of
        self._free = threading.Semaphore(at_once)

    def start(self, items: Iterator[Any], target: queue.Queue[Any]) -> None:
        """Put these into a queue, with how they end, in a thread of their own."""

        def work() -> None:
            end: BaseException | None = None
            try:
                for item in items:
                    if not self._put(target, item):
                        return
            except BaseException as error:
                end = error
            self._put(target, end)
            if end is not None:
                self._put(target, None)

        threading.Thread(target=work, name="listing", daemon=True).start()

    def _put(self, target: queue.Queue[Any], item: Any) -> bool:
        while not self.is_left.is_set():
            try:
                target.put(item, timeout=_LOOK_S)
            except queue.Full:
                continue
            return True
        return False

    def scouted(self, folder: str) -> Iterator[Any]:
        """The scout's own pages, and a queue for each folder that is listed beside it."""
        pages, left_out, before = self._pages_of(folder, ""), "", ""
        while (page := next(pages, None)) is not None:
            entries = [key for key in page if not key["path"].startswith(left_out)] if left_out else page
            if not entries:
                continue
            yield entries
            last = entries[-1]["path"]
            large = _common_folder(entries[0]["path"], last)
            if len(large) > len(folder) and before.startswith(f"{large}/") and _PLAIN.fullmatch(last):
                if not self._begin():
                    return
                rest: queue.Queue[Any] = queue.Queue(_BUFFERED)
                self.start(self._rest_of(large, last), rest)
                yield rest
                left_out = f"{large}/"
                pages = self._pages_of(folder, left_out + _BEHIND)
            before = last

    def _begin(self) -> bool:
        while not self.is_left.is_set():
            if self._free.acquire(timeout=_LOOK_S):
                return True
        return False

    def _rest_of(self, folder: str, last: str) -> Iterator[Sequence[Any]]:
        try:
            yield from self._pages_of(folder, last)
        finally:
            self._free.release()


def _common_folder(first: str, last: str) -> str:
    """The deepest folder that both keys are in; empty if there is none."""
    folders = zip(first.split("/")[:-1], last.split("/")[:-1], strict=False)
    common = []
    for one, other in folders:
        if one != other:
            break
        common.append(one)
    return "/".join(common)
