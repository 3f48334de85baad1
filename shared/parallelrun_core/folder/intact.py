"""The check that rows in a part file are what was committed."""

from __future__ import annotations

from pathlib import Path

from isal.isal_zlib import crc32

from parallelrun_core.wire.outcome import RowsPlace

_BLOCK_BYTES = 1 << 20


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
