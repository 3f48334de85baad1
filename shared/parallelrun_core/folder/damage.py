"""Damage in a record log: a range that can't be read, although what was there had been acknowledged.

A writer that dies leaves a torn end: an incomplete frame, or zeros, and nothing after it. A disk that loses a byte
leaves whole frames after the bad one, or a file that is shorter than what was accepted of it. Only that is damage.
Ranges of part files have their checksums in the journal.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Final, NamedTuple

from isal.isal_zlib import crc32

from parallelrun_core.wire.outcome import RowsPlace

FRAME: Final = struct.Struct("<II")

_WINDOW_BYTES: Final = 1 << 20
_MOST_SCANNED: Final = 256 << 20
_MOST_CHECKED: Final = 1 << 30
"""Bounds of a search, in bytes: a log that is nothing but noise must not hold a leader up for long."""
_LIKELY: Final = re.compile(rb"(?s)(?=...[\x00-\x03]....[\[{\x93\xc1])")
"""A frame that is shorter than 64 MiB, of a JSON array or object, or a message, or the manifest's last record. None can
hide inside a JSON payload: JSON has no bytes below 32."""
_BLOCK_BYTES = 1 << 20


class Damage(NamedTuple):
    """A range of a file that can't be read."""

    path: Path
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path.name} can't be read from byte {self.start:,} to byte {self.end:,}"


def frame_crc(payload: bytes) -> int:
    # The length is included, so that a run of zeros, as some file systems leave it after a crash, is not a record.
    return crc32(payload, crc32(len(payload).to_bytes(4, "little")))


def next_whole_frame(fd: int, start: int, end: int) -> int | None:
    """The offset of the first whole frame that begins at `start` or later and ends at `end` or before."""
    checked, at = 0, start
    while at < min(end, start + _MOST_SCANNED):
        window = os.pread(fd, _WINDOW_BYTES, at)
        for likely in _LIKELY.finditer(window):
            begin = at + likely.start()
            length, crc = FRAME.unpack_from(window, likely.start())
            if begin + FRAME.size + length > end:
                continue
            checked += length
            if checked > _MOST_CHECKED:
                return None
            if frame_crc(os.pread(fd, length, begin + FRAME.size)) == crc:
                return begin
        if len(window) < _WINDOW_BYTES:
            return None
        at += _WINDOW_BYTES - FRAME.size  # what begins in the last bytes of a window is in the next one, too
    return None


def has_rows(parts: Path, place: RowsPlace) -> bool:
    """Return whether the rows of an outcome are there and have its crc; see `is_intact`."""
    return is_intact(parts, place.part, place.offset, place.length, place.crc)


def is_intact(parts: Path, part: str, offset: int, length: int, crc: int) -> bool:
    """Return whether a range of a part file is there and has this crc.

    Raises:
        OSError: the file is there, and can't be read.
    """
    if not length:
        return True
    present, remaining_bytes = 0, length
    try:
        with (parts / part).open("rb") as file:
            file.seek(offset)
            while remaining_bytes and (block := file.read(min(remaining_bytes, _BLOCK_BYTES))):
                present = crc32(block, present)
                remaining_bytes -= len(block)
    except FileNotFoundError:
        return False
    return not remaining_bytes and present == crc
