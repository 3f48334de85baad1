"""Copies segments into one file: verified, synced, and visible only when it is whole."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from parallelrun_concatenator.output import Merged, Output
from parallelrun_concatenator.parts import Parts
from parallelrun_concatenator.segments import Segment
from parallelrun_core import failpoints
from parallelrun_core.files import sync_folder


class Assembler(Protocol):
    """Makes the output of segments; the same one from the same ones."""

    def assemble(self, segments: Iterable[Segment], parts: Parts, output: Output) -> None:
        """Write all of them to the output."""


class OneBehindTheOther:
    """Lines need nothing but to be copied."""

    def assemble(self, segments: Iterable[Segment], parts: Parts, output: Output) -> None:
        for segment in segments:
            parts.copy(segment, output)


def merge(
    segments: Iterable[Segment],
    parts: Path,
    target: Path,
    progress: Callable[[int], None],
    assembler: Assembler | None = None,
    *,
    before_rename: Callable[[], object] = lambda: None,
) -> Merged:
    """Make `target` of the segments; lines are put one behind the other.

    The file is built beside the target and renamed when it is synced, so a reader sees the whole output or none.
    Running it again gives the same bytes.

    Args:
        before_rename: called when all is durable; what it raises keeps the output from being published.

    Raises:
        CorruptLog: the rows of a segment are not what was committed.
        OSError: a part is missing, or the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".merging-{parts.parent.name}-{secrets.token_hex(8)}")
    opened = Parts(parts)
    try:
        with Output(beside, progress) as output:
            (assembler or OneBehindTheOther()).assemble(segments, opened, output)
            failpoints.reach("concatenate.before_sync")
            merged = output.finish()
        before_rename()
        failpoints.reach("concatenate.before_rename")
        os.rename(beside, target)
        failpoints.reach("concatenate.after_rename")
        sync_folder(target.parent)
    finally:
        opened.close()
        beside.unlink(missing_ok=True)
    progress(merged.length)
    return merged
