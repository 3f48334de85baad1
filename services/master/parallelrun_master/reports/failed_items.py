"""logs/failed_items.csv: each item that has failed for good, in the order of the mini-batches, with why it has.

Names are read from the manifest when the job has ended; until then it is enough to know their places there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.manifest import ManifestCursor, resolve
from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.sanitize import csv_cell
from parallelrun_core.wire import message
from parallelrun_core.wire.error_kinds import short_place
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure, LostItems, Outcome
from parallelrun_master.reports.files import replace_text

HEADER: Final = "Item,Mini-batch Id,Error Category,Error Message,Place"
_MOST_ITEMS: Final = 100_000
_MOST_MINI_BATCHES: Final = 20_000
_MOST_MESSAGE: Final = 300


class _Lost(NamedTuple):
    """Consecutive items of a mini-batch that have failed for one reason."""

    first: int
    items: int
    category: str
    message: str
    place: str


class FailedItems:
    """The items of a job that have failed for good, up to a number of them.

    Args:
        mask: hides secrets in messages.
    """

    def __init__(self, mask: Mask | None = None) -> None:
        self._mask = mask or Mask({})
        self._by_mini_batch: dict[int, list[_Lost]] = {}

    def add(self, outcome: Outcome) -> None:
        """Take note of a decision, which replaces an earlier one of its mini-batch."""
        self.take_out(outcome.mini_batch)
        lost = outcome.lost
        if not lost and outcome.status == "failed" and outcome.failure is not None:
            lost = (LostItems(0, outcome.items, outcome.failure),)
        if lost and len(self._by_mini_batch) < _MOST_MINI_BATCHES:
            self._by_mini_batch[outcome.mini_batch] = [self._of(each, each.failure) for each in lost]

    def take_out(self, mini_batch: int) -> None:
        """Forget the failures of a mini-batch: it is decided once more."""
        self._by_mini_batch.pop(mini_batch, None)

    def _of(self, lost: LostItems, failure: Failure) -> _Lost:
        text = self._mask.text(failure.message.partition("\n")[0])[:_MOST_MESSAGE]
        return _Lost(lost.first, lost.items, failure.category, text, short_place(self._mask.text(failure.traceback)))

    def write(self, folder: Path, logs: Path, count: int) -> None:
        """Write the file, or remove that of an earlier end if nothing has failed.

        Args:
            count: how many items have failed in all, with those that are not listed, but without estimates: of a range
                that could not be read, one line names the file.
        """
        path = Logs(logs).failed_items
        if not self._by_mini_batch:
            path.unlink(missing_ok=True)
            return
        lines, counted = [HEADER], 0
        with suppress(ParallelRunError, OSError):  # a disk that has lost names fails no job for this list
            for number, name, lost in islice(self._items(folder), _MOST_ITEMS):
                cells = map(csv_cell, (lost.category, lost.message, lost.place))
                lines.append(",".join((csv_cell(name), str(number), *cells)))
                counted += lost.items > 0
        if count > counted:
            lines.append(f"{csv_cell(f'({count - counted:,} more items, which are not listed)')},,,,")
        replace_text(path, "\n".join(lines) + "\n")

    def _items(self, folder: Path) -> Iterator[tuple[int, str, _Lost]]:
        numbers = sorted(self._by_mini_batch)
        cursor = ManifestCursor(folder, first=numbers[0])
        try:
            for number in range(numbers[0], numbers[-1] + 1):
                entry = cursor.read_whole()
                for lost in self._by_mini_batch.get(number, ()):
                    names = _names(folder, entry.raw, lost)
                    yield from ((number, name, lost) for name in names)
        finally:
            cursor.close()


def _names(folder: Path, raw: bytes, lost: _Lost) -> list[str]:
    """Return the names of items: paths, or the numbers of rows in their mini-batch; one name if nobody knows how many
    rows there are.
    """
    try:
        mini_batch = resolve(folder, message.decode(raw))
        paths = message.files_of(mini_batch)
    except (ParallelRunError, OSError):
        paths, mini_batch = [], None
    if mini_batch is not None and mini_batch.items == len(paths):
        return [os.fsdecode(path) for path in paths[lost.first : lost.first + lost.items]]
    if keys := _keys(mini_batch):  # its file may be one of ours, in which rows were grouped
        where = f"partition {keys}"
    else:
        files = ", ".join(dict.fromkeys(os.fsdecode(path) for path in paths[:3]))
        where = f"mini-batch of {files}" if files else "mini-batch"
    if not lost.items:
        return [f"all rows of the {where}, whose number is unknown"]
    return [f"row {row + 1:,} of the {where}" for row in range(lost.first, lost.first + lost.items)]


def _keys(mini_batch: message.Message | None) -> str:
    """Return the values of the job's `partition_keys` in a mini-batch; empty: it has none."""
    if mini_batch is None or not message.is_described(mini_batch):
        return ""
    return ", ".join("null" if key is None else key for key in message.described_of(mini_batch).keys)
