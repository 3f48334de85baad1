"""Which bytes of which part file make the output, in mini-batch order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from parallelrun_core.decisions import read_decisions
from parallelrun_core.errors import CorruptLog

_PLACE = Struct("=QQII")  # offset, length, crc, number of the part


class Segment(NamedTuple):
    """The rows of one mini-batch."""

    mini_batch: int
    part: str
    offset: int
    length: int
    crc: int


class SegmentTable:
    """Every decided segment of a job, in 24 bytes each, at the place that its mini-batch's number gives it.

    Raises:
        CorruptLog: a mini-batch has two. Nobody lets that happen; but here is the last chance to see it.
    """

    def __init__(self, folder: Path) -> None:
        self._places = bytearray()
        self._count = 0
        self.bytes = 0
        """Of all segments together."""
        numbers: dict[str, int] = {}
        for outcome in read_decisions(folder):
            if outcome.status != "done" or not outcome.length:
                continue
            place = outcome.mini_batch * _PLACE.size
            if place >= len(self._places):
                self._places.extend(bytes(place + _PLACE.size - len(self._places)))
            elif _PLACE.unpack_from(self._places, place)[1]:
                raise CorruptLog(f"mini-batch {outcome.mini_batch} has been decided twice, with rows each time")
            number = numbers.setdefault(outcome.part, len(numbers))
            _PLACE.pack_into(self._places, place, outcome.offset, outcome.length, outcome.crc, number)
            self._count += 1
            self.bytes += outcome.length
        self._parts = list(numbers)

    def __len__(self) -> int:
        return self._count

    def in_order(self) -> Iterator[Segment]:
        """The segments by mini-batch."""
        for mini_batch, (offset, length, crc, part) in enumerate(_PLACE.iter_unpack(self._places)):
            if length:
                yield Segment(mini_batch, self._parts[part], offset, length, crc)
