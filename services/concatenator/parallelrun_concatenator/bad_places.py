"""Rows at a bad place of a disk: they can't be read, however often that is tried, while others on the volume can."""

from __future__ import annotations

import errno
import time
from itertools import islice
from pathlib import Path
from typing import Final

from parallelrun_concatenator.segments import Segment, SegmentTable
from parallelrun_core.folder.damage import is_intact
from parallelrun_core.wire.outcome import LostRows

PAUSES_S: Final = (1.0, 5.0, 15.0)
"""Before each further try."""
_AT_ONCE: Final = 1000
"""A disk may take seconds to give a place up. What is left is found when the output is put together again."""


def unreadable(error: OSError, table: SegmentTable, parts: Path) -> list[LostRows]:
    """The rows in the part file of this error that can't be read any more; none if it may be the volume that is away.

    Waits between its tries; the volume counts as there if another segment can be read after all of them.
    """
    path = Path(error.filename or "")
    if error.errno != errno.EIO or path.parent != parts:
        return []
    here = [segment for segment in table.in_order() if segment.part == path.name]
    bad = list(islice((segment for segment in here if not _can_be_read(parts, segment)), _AT_ONCE))
    for pause_s in PAUSES_S:
        if not bad:
            return []
        time.sleep(pause_s)
        bad = [segment for segment in bad if not _can_be_read(parts, segment)]
    given_up = {segment.mini_batch for segment in bad}
    others = (segment for segment in table.in_order() if segment.mini_batch not in given_up)
    if not any(_can_be_read(parts, segment) for segment in islice(others, _AT_ONCE)):
        return []
    return [LostRows(segment.mini_batch, segment.part, segment.offset) for segment in bad]


def _can_be_read(parts: Path, segment: Segment) -> bool:
    try:
        is_intact(parts, segment.part, segment.offset, segment.length, segment.crc)
    except OSError:
        return False
    return True
