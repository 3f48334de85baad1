"""Whether the input files of a resumed job are still those that were scheduled."""

from __future__ import annotations

import os
from pathlib import Path

from parallelrun_core.folder.decisions import Decided
from parallelrun_core.folder.manifest import NAME, read_manifest
from parallelrun_core.folder.term_log import file_of
from parallelrun_core.message import decode, files_of
from parallelrun_core.storage.location import joined
from parallelrun_core.storage.stores import storage_of

_MOST = 10


def changed_inputs(folder: Path, decided: Decided) -> list[str]:
    """What has changed about the files of undecided mini-batches since they were scheduled: the first few, a line each.

    A file counts as changed when it was written to after the last entry of the term that listed it: what was changed
    while the rest was still being listed is not noticed.
    """
    changes: list[str] = []
    more = 0
    written: dict[int, float] = {}
    for entry in read_manifest(folder):
        if entry.mini_batch in decided:
            continue
        if entry.term not in written:
            written[entry.term] = os.stat(file_of(folder, NAME, entry.term)).st_mtime
        for path in files_of(decode(entry.raw)):
            change = _change(_whole(folder, path), written[entry.term])
            if change and len(changes) < _MOST:
                changes.append(f"{os.fsdecode(path)} {change}")
            elif change:
                more += 1
    return [*changes, f"and {more:,} more"] if more else changes


def _whole(folder: Path, path: bytes) -> bytes:
    """A path of a message; rows that were grouped are in the job's folder."""
    return path if path.startswith(b"/") else os.fsencode(joined(str(folder), os.fsdecode(path)))


def _change(path: bytes, scheduled: float) -> str:
    try:
        return "was changed" if storage_of(path).version(path).modified > scheduled else ""
    except OSError:
        return "is gone"
