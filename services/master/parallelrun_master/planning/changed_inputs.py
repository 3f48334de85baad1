"""Changes of a job's inputs: of its files since they were scheduled, if it is resumed; and of what there is since they
were listed, as a job runs by that list, also if it goes on much later."""

from __future__ import annotations

import os
from itertools import chain, repeat
from pathlib import Path
from typing import Final

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import NAME, read_manifest
from parallelrun_core.folder.term_log import file_of
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.storage.interface import packed
from parallelrun_core.storage.location import is_url, joined
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire.message import FileVersion, decode, files_of, listed_versions
from parallelrun_master.planning.sources import Sources, paths_in

_MOST_CHANGES = 10
_MOST_ASKED_OF_STORE = 2000
"""Of the files that a store is asked for, each with a request: whoever reads one asks for exactly its version, too."""
_MOST_NAMED: Final = 5
_MOST_FILES: Final = 1_000_000
"""With more of them, nothing is said: the list would take too much memory."""
_MOST_ASKED: Final = 50_000
"""Files whose time of modification is asked for."""


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
            if count > _MOST_ASKED_OF_STORE:
                continue
        versions = chain(listed, repeat(None))
        for path, version in zip(files_of(message), versions):  # noqa: B905 - endless, where there are none
            change = _change(_whole(folder, path), written[entry.term], version)
            if change and len(changes) < _MOST_CHANGES:
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


def listing_changes(folder: Path, rule: PathRule | None, listed_at: float = 0.0) -> str:
    """Return what has changed in the inputs since a complete list of them was made, and what to do; empty: nothing.

    It is for people, and decides nothing: what can't be listed now is left to whoever reads it.

    Args:
        folder: of the job.
        rule: what may be listed.
        listed_at: when that was, in seconds since the epoch; 0: when the files of the list were written last.
    """
    plans = load_plans(folder) or []
    if not plans or any(plan.is_shuffled for plan in plans):
        return ""
    listed: dict[bytes, float] = {}
    times: dict[int, float] = {}
    for entry in read_manifest(folder):
        if entry.term not in times:
            times[entry.term] = listed_at or os.stat(file_of(folder, NAME, entry.term)).st_mtime
        listed.update(dict.fromkeys(files_of(decode(entry.raw)), times[entry.term]))
        if len(listed) > _MOST_FILES:
            return ""
    try:
        present = {path for plan in plans for path in paths_in(Sources(plan, rule))}
    except (OSError, ParallelRunError):
        return ""
    news = [(path, "is new") for path in sorted(present - listed.keys())]
    news += [(path, "is gone") for path in sorted(listed.keys() - present)]
    both = sorted(present & listed.keys())
    news += [(path, "was changed") for path in both[:_MOST_ASKED] if _is_changed(path, listed[path])]
    return _in_words(news)


def _is_changed(path: bytes, listed: float) -> bool:
    try:
        return not is_url(os.fsdecode(path)) and storage_of(path).version(path).modified > listed
    except OSError:
        return False


def _in_words(news: list[tuple[bytes, str]]) -> str:
    if not news:
        return ""
    named = [
        f"{visible(os.fsdecode(os.path.basename(path)), lines=False)} {event}" for path, event in news[:_MOST_NAMED]
    ]
    if len(news) > _MOST_NAMED:
        named.append(f"and {len(news) - _MOST_NAMED:,} more")
    files = "1 file is" if len(news) == 1 else f"{len(news):,} files are"
    return (
        f"{files} not as when the inputs were listed ({', '.join(named)}): new files are not in this run, and rows of "
        "files that were changed or removed since they were processed are kept; a new job without resume_from reads all"
    )
