"""The items of a job that have failed for good, page by page, from its `failed_items.csv`."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from parallelrun_api.http.paging import decode_numbers, encode_token
from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.mini_batches import FailedItem, FailedItemPage
from parallelrun_core.answers.pictures import KindOfError, KindsOfErrors
from parallelrun_core.errors import NotFound
from parallelrun_core.layout import FAILED_ITEMS
from parallelrun_core.wire.masking import Mask

if TYPE_CHECKING:
    from parallelrun_core.tries.history import History

_LIST: Final = "failed-items"
_COLUMNS: Final = 5
_LONGEST_LINE: Final = 1 << 20
_MOST_LINES: Final = 200_000
"""More than the leader writes: user code may have written into its job's logs."""


@dataclass(frozen=True, kw_only=True)
class FailedItemFilter:
    """The items that are asked for: of one mini-batch, of one category, with a text in their name or message."""

    mini_batch: int | None
    category: str
    text: str

    def has(self, item: FailedItem) -> bool:
        is_of = self.mini_batch in (None, item.mini_batch) and self.category in ("", item.category)
        return is_of and (self.text in item.item or self.text in item.message)


def failed_items(logs: ServedFolder, only: FailedItemFilter, *, limit: int, token: str, total: int) -> FailedItemPage:
    """Return one page of them, in the order of their mini-batches; none as long as the job has not ended.

    Args:
        total: how many have failed in all, with those that are not listed.

    Raises:
        InvalidInput: the token is not one of this list.
    """
    begin = decode_numbers(token, _LIST, 1)[0] if token else 0
    try:
        fd = logs.open(FAILED_ITEMS)
    except NotFound:
        return FailedItemPage(items=[], total=total)
    items: list[FailedItem] = []
    with os.fdopen(fd, "rb") as file:
        for offset, item in _listed(file, begin):
            if not only.has(item):
                continue
            if len(items) == limit:
                return FailedItemPage(items=items, total=total, next_page_token=encode_token(_LIST, offset))
            items.append(item)
    return FailedItemPage(items=items, total=total)


def _listed(file: BinaryIO, begin: int) -> Iterator[tuple[int, FailedItem]]:
    """The items from an offset on, each with its own offset. The line with how many more there are is none."""
    file.seek(begin)
    offset = begin
    for _ in range(_MOST_LINES):
        line = file.readline(_LONGEST_LINE)
        if not line:
            return
        item = _item(line.decode(errors="replace"))
        if item is not None:
            yield offset, item
        offset += len(line)


def _item(line: str) -> FailedItem | None:
    """Return what a line says; None: it is the header, or not one that the leader has written."""
    cells = next(csv.reader([line.rstrip("\r\n").replace("\0", "")]), [])
    if len(cells) != _COLUMNS or not (cells[1].isascii() and cells[1].isdecimal()):
        return None
    name, mini_batch, category, message, place = cells
    return FailedItem(item=name, mini_batch=int(mini_batch[:18]), category=category, message=message, place=place)


def kinds_of_errors(history: History) -> KindsOfErrors:
    """All kinds that are known, with the values of environment variables masked in them."""
    mask = Mask(history.record.spec)
    errors = history.errors
    items = [
        KindOfError(
            category=kind.failure.category,
            place=mask.printable(kind.place),
            message=mask.printable(kind.failure.message),
            traceback=mask.printable(kind.failure.traceback),
            has_several_messages=kind.has_several_messages,
            count=kind.count,
            mini_batches=kind.mini_batches,
            node=kind.first.node,
            process=kind.first.process,
            log=f"user/error/{kind.first.node}/{kind.first.process}.txt" if kind.first.process else "",
        )
        for kind in errors.most_frequent()
    ]
    return KindsOfErrors(items=items, count=errors.count, left_out=errors.left_out, read_share=history.read_share)
