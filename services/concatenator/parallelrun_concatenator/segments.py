"""Segments: the bytes of part files that make the output, in mini-batch order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct

import msgspec

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.damage import is_intact
from parallelrun_core.folder.decisions import first_wins, read_places
from parallelrun_core.folder.manifest import Closing
from parallelrun_core.wire.outcome import LostRows

_PLACE = Struct("=?QQIII")  # whether there is one, offset, length, crc, rows, number of the part
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
    """Every decided segment of a job, in 29 bytes each, indexed by mini-batch.

    Raises:
        CorruptLog: a mini-batch has two. Earlier steps prevent that; this is the last chance to notice.
    """

    def __init__(self, folder: Path) -> None:
        self._places = places = bytearray()
        self._count = 0
        self.bytes = 0
        """Of all segments together."""
        numbers: dict[str, int] = {}
        decided = first_wins(folder)
        for place in filter(decided.accept, read_places(folder)):
            length = place.length
            if not length or place.status != "done":
                continue
            at = place.mini_batch * _PLACE.size
            if at >= len(places):
                places.extend(bytes(at + _STEP_PLACES * _PLACE.size - len(places)))
            elif places[at]:
                raise CorruptLog(f"mini-batch {place.mini_batch} has been decided twice, with rows each time")
            number = numbers.setdefault(place.part, len(numbers))
            _PLACE.pack_into(places, at, True, place.offset, length, place.crc, place.rows, number)
            self._count += 1
            self.bytes += length
        self._parts = list(numbers)
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
        """The segments by mini-batch."""
        for mini_batch, (is_there, offset, length, crc, rows, part) in enumerate(_PLACE.iter_unpack(self._places)):
            if is_there:
                yield Segment(mini_batch, self._parts[part], offset, length, crc, rows)
