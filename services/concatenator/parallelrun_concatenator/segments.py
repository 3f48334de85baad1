"""Which bytes of which part file make the output, in mini-batch order."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from parallelrun_core.decisions import read_decisions


class Segment(NamedTuple):
    """The rows of one mini-batch."""

    mini_batch: int
    part: str
    offset: int
    length: int
    crc: int


class SegmentTable:
    """Every decided segment of a job, in a few dozen bytes each."""

    def __init__(self, folder: Path) -> None:
        self._parts: list[str] = []
        self._mini_batch = array("Q")
        self._part = array("I")
        self._offset = array("Q")
        self._length = array("Q")
        self._crc = array("I")
        numbers: dict[str, int] = {}
        for outcome in read_decisions(folder):
            if outcome.status != "done" or not outcome.length:
                continue
            number = numbers.setdefault(outcome.part, len(numbers))
            self._mini_batch.append(outcome.mini_batch)
            self._part.append(number)
            self._offset.append(outcome.offset)
            self._length.append(outcome.length)
            self._crc.append(outcome.crc)
        self._parts = list(numbers)
        self.bytes = sum(self._length)

    def __len__(self) -> int:
        return len(self._mini_batch)

    def in_order(self) -> Iterator[Segment]:
        """The segments by mini-batch."""
        for row in sorted(range(len(self)), key=self._mini_batch.__getitem__):
            yield Segment(
                self._mini_batch[row],
                self._parts[self._part[row]],
                self._offset[row],
                self._length[row],
                self._crc[row],
            )
