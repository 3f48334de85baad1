"""The check that the input files of a resumed job are still those that were scheduled."""

from __future__ import annotations

import os
from itertools import chain, repeat
from pathlib import Path

from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import NAME, read_manifest
from parallelrun_core.folder.term_log import file_of
from parallelrun_core.storage.interface import packed
from parallelrun_core.storage.location import joined
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import FileVersion, decode, files_of, listed_versions

_MOST = 10
_MOST_ASKED = 2000
"""Of the files that a store is asked for, each with a request: whoever reads one asks for exactly its version, too."""


def changed_inputs(folder: Path, decided: Decided) -> list[str]:
    """Return what has changed about the files of undecided mini-batches since they were scheduled: the first few, a
    line each.

    A file counts as changed when it was written to after the last entry of the term that listed it: what was changed
    while the rest was still being listed is not noticed. A file with a version counts as changed when that is another.

    Raises:
        StoreAway: a store doesn't answer, or refuses for now.
    """
    changes: list[str] = []
    more = count = 0
    written: dict[int, float] = {}
    for entry in read_manifest(folder):
        if entry.mini_batch in decided:
            continue
        if entry.term not in written:
            written[entry.term] = os.stat(file_of(folder, NAME, entry.term)).st_mtime
        message = decode(entry.raw)
        listed = listed_versions(message)
        if listed:
            count += len(listed)
            if count > _MOST_ASKED:
                continue
        versions = chain(listed, repeat(None))
        for path, version in zip(files_of(message), versions):  # noqa: B905 - endless, where there are none
            change = _change(_whole(folder, path), written[entry.term], version)
            if change and len(changes) < _MOST:
                changes.append(f"{os.fsdecode(path)} {change}")
            elif change:
                more += 1
    return [*changes, f"and {more:,} more"] if more else changes


def _whole(folder: Path, path: bytes) -> bytes:
    """A path of a message; rows that were grouped are in the job's folder."""
    return path if path.startswith(b"/") else os.fsencode(joined(str(folder), os.fsdecode(path)))


def _change(path: bytes, scheduled: float, listed: FileVersion | None) -> str:
    try:
        present = storage_of(path).version(path)
        is_changed = present.modified > scheduled if listed is None else packed(present) != listed
        return "was changed" if is_changed else ""
    except StoreAway:
        raise
    except OSError:
        return "is gone"
