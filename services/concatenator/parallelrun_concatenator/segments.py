"""Segments: the bytes of part files that make the output, in mini-batch order."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import suppress
from itertools import compress, count
from pathlib import Path

import msgspec

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.damage import is_intact
from parallelrun_core.folder.decisions import first_wins, read_places_of_records
from parallelrun_core.folder.manifest import Closing
from parallelrun_core.wire.outcome import LostRows

_STEP_PLACES = 4096
"""A table that grows by steps is cheaper than one that grows with each place."""


class Segment(msgspec.Struct, frozen=True, gc=False):
    """The rows of one mini-batch."""

    mini_batch: int
    part: str
    offset: int
    length: int
    crc: int
    rows: int
    """Number of, by its decision."""


class LacksDecisions(CorruptLog):
    """A mini-batch has no decision."""


class SegmentTable:
    """Every decided segment of a job, in 28 bytes each, by columns that are indexed by mini-batch.

    Raises:
        CorruptLog: a mini-batch has two. Earlier steps prevent that; this is the last chance to notice.
    """

    def __init__(self, folder: Path) -> None:
        self._lengths, self._offsets = lengths, offsets = array("Q"), array("Q")
        self._crcs, self._rows, self._parts = crcs, rows, parts = array("I"), array("I"), array("I")
        self._count = 0
        self.bytes = 0
        """Of all segments together."""
        numbers: dict[str, int] = {}
        decided = first_wins(folder)
        for recorded in read_places_of_records(folder):
            for place in decided.accepted(recorded):
                length, mini_batch = place.length, place.mini_batch
                if not length or place.status != "done":
                    continue
                if mini_batch >= len(lengths):
                    for column in (lengths, offsets, crcs, rows, parts):
                        column.frombytes(bytes((mini_batch + _STEP_PLACES - len(column)) * column.itemsize))
                elif lengths[mini_batch]:
                    raise CorruptLog(f"mini-batch {mini_batch} has been decided twice, with rows each time")
                lengths[mini_batch], offsets[mini_batch], crcs[mini_batch] = length, place.offset, place.crc
                rows[mini_batch], parts[mini_batch] = place.rows, numbers.setdefault(place.part, len(numbers))
                self._count += 1
                self.bytes += length
        self._names = list(numbers)
        self._decided = decided.count

    def check_complete(self, closing: Closing | None) -> None:
        """Compare with the number of mini-batches in the manifest.

        Raises:
            LacksDecisions: one has no decision, because the disk has lost that.
            CorruptLog: nobody knows how many there are.
        """
        if closing is None:
            raise CorruptLog("the end of the manifest is missing, which says how many mini-batches there are")
        if self._decided < closing.mini_batches:
            missing = closing.mini_batches - self._decided
            raise LacksDecisions(f"{missing:,} of {closing.mini_batches:,} mini-batches have no decision")

    def __len__(self) -> int:
        return self._count

    def lost(self, parts: Path) -> Iterator[LostRows]:
        """The segments whose rows are not what was committed; of those that can't be read, nobody knows."""
        for segment in self.in_order():
            with suppress(OSError):
                if is_intact(parts, segment.part, segment.offset, segment.length, segment.crc):
                    continue
                yield LostRows(segment.mini_batch, segment.part, segment.offset)

    def in_order(self) -> Iterator[Segment]:
        names = map(self._names.__getitem__, self._parts)
        segments = map(Segment, count(), names, self._offsets, self._lengths, self._crcs, self._rows)
        return compress(segments, self._lengths)
