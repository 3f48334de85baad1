"""Rows of a mini-batch that are kept while its failed items are run again, as its worker needs them."""

from __future__ import annotations

from pathlib import Path

from isal.isal_zlib import crc32

from parallelrun_core.wire.message import RetriedItems


def kept_rows(parts: Path, items: RetriedItems) -> bytes:
    """Return the rows of the other items; none if they are not what was committed: then all items are run."""
    if not items.length:
        return b""
    try:
        with (parts / items.part).open("rb") as file:
            file.seek(items.offset)
            rows = file.read(items.length)
    except OSError:
        return b""
    return rows if len(rows) == items.length and crc32(rows) == items.crc else b""
