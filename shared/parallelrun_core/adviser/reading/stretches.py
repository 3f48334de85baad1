"""Stretches of a log: all of it, or of a huge one some that are spread evenly, with its beginning and end.

So advice on any job takes about the same time and memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parallelrun_core.folder.damage import next_whole_frame
from parallelrun_core.folder.record_log import read_records
from parallelrun_core.folder.term_log import file_of, spans

MOST_BYTES: Final = 48 << 20
"""Of one log; 200,000 to 400,000 tries."""
STRETCHES: Final = 48


@dataclass(frozen=True)
class Stretch:
    """A range of bytes of one file."""

    path: Path
    start: int
    end: int
    is_whole: bool
    """True if it begins where a record does, and has all that counts there."""


@dataclass(frozen=True)
class LogStretches:
    stretches: list[Stretch]
    total_bytes: int
    """Size of the whole log."""

    @property
    def is_all(self) -> bool:
        return all(stretch.is_whole for stretch in self.stretches)


def parts_of(folder: Path, name: str, most_bytes: int = MOST_BYTES) -> LogStretches:
    """Return what of a term log is read, so that it is no more than about so many bytes.

    Raises:
        NewerSchema: a newer release has written it.
    """
    whole = []
    for span in spans(folder, name, on_damage=lambda _: None):
        path = file_of(folder, name, span.term)
        try:
            end = path.stat().st_size if span.end is None else span.end
        except FileNotFoundError:
            continue
        whole.append(Stretch(path, span.start, max(span.start, end), is_whole=True))
    total = sum(each.end - each.start for each in whole)
    return LogStretches(whole if total <= most_bytes else list(_some(whole, total, most_bytes)), total)


def _some(whole: list[Stretch], total: int, most_bytes: int) -> Iterator[Stretch]:
    length = max(1, most_bytes // STRETCHES)
    for number in range(STRETCHES):
        remaining_bytes = (total - length) * number // (STRETCHES - 1)
        for each in whole:
            size = each.end - each.start
            if remaining_bytes < size:
                start = each.start + remaining_bytes
                yield Stretch(each.path, start, min(each.end, start + length), is_whole=False)
                break
            remaining_bytes -= size


def records_in(stretch: Stretch) -> Iterator[tuple[int, bytes]]:
    """`(bytes, payload)` of the records that begin in it. What can't be read is passed over."""
    before = stretch.start if stretch.is_whole else _first_record(stretch)
    for at, payload in read_records(stretch.path, start=before, end=stretch.end, on_damage=lambda _: None):
        yield at - before, payload
        before = at


def _first_record(stretch: Stretch) -> int:
    try:
        fd = os.open(stretch.path, os.O_RDONLY)
    except FileNotFoundError:
        return stretch.end
    try:
        begin = next_whole_frame(fd, stretch.start, os.fstat(fd).st_size)
        return stretch.end if begin is None else begin
    finally:
        os.close(fd)
