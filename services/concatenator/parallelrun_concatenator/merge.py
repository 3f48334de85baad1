"""Copies segments into one file: verified, synced, and visible only when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from parallelrun_concatenator.output import BlockWriter, Merged
from parallelrun_concatenator.parts import PartFiles
from parallelrun_concatenator.segments import Segment
from parallelrun_core.service import failpoints
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of


class Assembler(Protocol):
    """Makes the output of segments; the same segments give the same output."""

    @property
    def notes(self) -> Sequence[str]:
        """Sentences for the user about the output."""

    def assemble(self, segments: Iterable[Segment], parts: PartFiles, output: BlockWriter) -> None:
        """Write all of them to the output."""


class Verbatim:
    """Copies the rows as they are, which is all that lines need."""

    notes = ()

    def assemble(self, segments: Iterable[Segment], parts: PartFiles, output: BlockWriter) -> None:
        parts.copy(segments, output)


def merge(
    segments: Iterable[Segment],
    parts: Path,
    target: str,
    progress: Callable[[int], None],
    assembler: Assembler | None = None,
    *,
    before_publishing: Callable[[], Collection[str]] = tuple,
    rule: PathRule | None = None,
) -> Merged:
    """Make `target` of the segments; without an assembler they are copied one after the other.

    Nobody sees the file before it is durable, so a reader finds the whole output or none. Running it again gives the
    same bytes.

    Args:
        before_publishing: called when all is durable; returns the sha256 of this job's earlier outputs, which may be
            replaced. What it raises keeps the output from being published.
        rule: where the job may write; None: anywhere.

    Raises:
        Conflict: the target exists, and is not an output of this job.
        UnsafePath: the rule refuses the folder of the target, by what it is now.
        CorruptLog: the rows of a segment are not what was committed.
        OSError: a part is missing, or the disk is full.
    """
    opened, storage, job_id = PartFiles(parts), storage_of(target), parts.parent.name
    if is_url(target):  # an upload that nobody completes is invisible, and paid for
        storage.discard(storage.unfinished(target, job_id))
    with closing(opened), storage.create(target, job_id, rule) as file:
        with BlockWriter(file, progress) as output:
            (assembler or Verbatim()).assemble(segments, opened, output)
            failpoints.reach("concatenate.before_sync")
            merged = output.finish()
        earlier = before_publishing()
        failpoints.reach("concatenate.before_rename")
        file.publish({merged.sha256, *earlier})
        failpoints.reach("concatenate.after_rename")
    progress(merged.length)
    return merged
