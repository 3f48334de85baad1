"""Takes over what an earlier job has finished, for a new job that does the rest (reference §1.4, `resume_from`).

Plan, decisions and rows come along: the manifest as it is, open or closed, so that mini-batches keep their ids; the
decisions that are `done`, with no failed item and all their rows; the part files that these name, and rows that were
grouped by keys, as hard links where the file system has them. Nothing changes in the earlier job, and it may be deleted
afterwards.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.durable_files import link_or_copy, sync_file, sync_folder
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.damage import has_rows
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import NAME, ManifestWriter, read_closing, read_manifest
from parallelrun_core.folder.records import Resumed
from parallelrun_core.folder.term_log import file_of, terms
from parallelrun_core.layout import Layout
from parallelrun_core.wire.message import decode
from parallelrun_core.wire.outcome import LostRows, Outcome

_TERM: Final = 1
"""No leader has led the new job yet: its first one draws a higher term, as after a failover."""
_AT_ONCE: Final = 1000
_MOST_SCHEMA_BYTES: Final = 64 << 20
_NO_FILE: Final = (errno.ENOENT, errno.ELOOP, errno.ENXIO)
"""It is missing, a link, or a socket."""


def take_over(earlier: JobFolder, folder: Path) -> Resumed:
    """Put what a job has finished into the folder of a job that doesn't exist yet, durably.

    Args:
        folder: exists, has a folder `parts`, and no other process uses it.

    Raises:
        CorruptLog: manifest and decisions of the earlier job contradict each other.
    """
    mini_batches = _take_manifest(earlier.path, folder)
    decisions = _take_decisions(earlier, folder, mini_batches)
    if earlier.layout.inputs.exists():
        _write(folder / earlier.layout.inputs.name, earlier.layout.inputs.read_bytes())
    for path in earlier.layout.schemas:
        _take_schema(path, folder / path.name)
    for groups in earlier.layout.all_grouped:
        _take_groups(groups, folder / groups.name)
    sync_folder(Layout(folder).parts)
    sync_folder(folder)
    return decisions


def lost_rows(folder: JobFolder, is_broken_off: Callable[[], bool] = lambda: False) -> Iterator[LostRows]:
    """The rows of decisions in a job that are not what was committed. Reads all of them, at the speed of the disk.

    What the disk refuses to give is left for who puts the output together, who reads all of it, too.

    Args:
        is_broken_off: asked before each; the rest is left likewise.
    """
    for outcome in read_decisions(folder.path):
        if is_broken_off():
            return
        try:
            is_lost = outcome.status == "done" and not has_rows(folder.parts, outcome)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            continue
        if is_lost:
            yield LostRows(outcome.mini_batch, outcome.part, outcome.offset)


def _take_manifest(source: Path, folder: Path) -> int:
    """Write the manifest again, in one file; returns how many mini-batches it has."""
    writer = ManifestWriter(folder, _TERM)
    try:
        for entry in read_manifest(source):
            writer.add(entry.raw, decode(entry.raw).items)
        end = read_closing(source)
        if end is None:
            writer.sync()
        elif writer.close(order=end.order) != end:
            raise CorruptLog(f"{source}: the manifest does not match the count and hash at its end")
    finally:
        writer.stop()
    return writer.mini_batches


def _listed_at(earlier: JobFolder) -> float:
    record = earlier.record()
    if record.resumed is not None and record.resumed.listed:
        return record.resumed.listed
    return max((file_of(earlier.path, NAME, term).stat().st_mtime for term in terms(earlier.path, NAME)), default=0.0)


def _take_decisions(earlier: JobFolder, folder: Path, mini_batches: int) -> Resumed:
    parts = _Parts(earlier, Layout(folder).parts)
    # One some of whose items have failed is run again, whole: the earlier job's `job retry` runs these items alone.
    done = (outcome for outcome in read_decisions(earlier.path) if outcome.status == "done" and not outcome.lost)
    with closing(DecisionWriter(folder, _TERM)) as writer:
        while some := list(islice(done, _AT_ONCE)):  # a success is final, so each mini-batch comes once
            for outcome in some:
                if outcome.mini_batch >= mini_batches:
                    number = outcome.mini_batch
                    raise CorruptLog(f"{earlier.path}: mini-batch {number} is decided, but not in the manifest")
            writer.add([msgspec.structs.replace(outcome, generation=0) for outcome in some if parts.take(outcome)])
        writer.sync()
        decided = writer.decided
    return Resumed(
        job_id=earlier.job_id, mini_batches=decided.done, rows=decided.rows, bytes=parts.bytes,
        listed=_listed_at(earlier),
    )  # fmt: skip


def _take_schema(source: Path, target: Path) -> None:
    """Copy a file that workers may have written, unless they have put something else there, or it is gone."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return
    try:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_SCHEMA_BYTES:
            with open(fd, "rb", closefd=False) as file:
                _write(target, file.read(_MOST_SCHEMA_BYTES))
    finally:
        os.close(fd)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    sync_file(path)


def _take_groups(source: Path, target: Path) -> None:
    """Take rows that were grouped by keys, unchanged."""
    target.mkdir()
    for path in source.iterdir():
        link_or_copy(path, target / path.name)
    sync_folder(target)


class _Parts:
    """The part files of the earlier job that have been taken so far, with their sizes."""

    def __init__(self, earlier: JobFolder, target: Path) -> None:
        self.bytes = 0
        self._earlier = earlier
        self._target = target
        self._sizes: dict[str, int] = {}

    def take(self, outcome: Outcome) -> bool:
        """Take the rows of a mini-batch into the new job's folder; whether they are there. Their crc is not checked."""
        if not outcome.length:
            return True
        name = outcome.part
        if name not in self._sizes:
            self._sizes[name] = self._link(name)
        if self._sizes[name] < outcome.offset + outcome.length:
            return False  # it is run again
        self.bytes += outcome.length
        return True

    def _link(self, name: str) -> int:
        """Returns the size of a part, 0 if it is gone."""
        source, target = self._earlier.parts / name, self._target / name
        try:
            link_or_copy(source, target)
        except FileNotFoundError:
            return 0
        return target.stat().st_size
