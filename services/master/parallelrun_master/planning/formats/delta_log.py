"""The log of a Delta table in a store, as a folder on this disk: all that the library for such tables has to read.

So a table is read with the clients that everything else is read with: with the credentials of its datastore, and no
others; below the locations that are allowed; with their patience, and counted.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.interface import Storage, Version
from parallelrun_core.storage.objects.copying import in_threads
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of

LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_AT_ONCE: Final = 8
"""A log is many small files, each a request."""
_MOST_BYTES: Final = 2 << 30
"""Of one file of a log, which the library reads as a whole."""


def check_size(folder: str, name: str, size_bytes: int | None) -> None:
    """Make sure that the library can read a file of the log of a table to its end.

    Args:
        size_bytes: None: it is no ordinary file, but a pipe or a device.

    Raises:
        InvalidInput: it can't.
    """
    if size_bytes is None or size_bytes > _MOST_BYTES:
        why = "no ordinary file" if size_bytes is None else f"larger than {_MOST_BYTES >> 30} GiB"
        raise InvalidInput(f"{folder}: this Delta table can't be read: {name[:200]!r} in its log is {why}")


def needed(names: Iterable[str], version: int) -> list[str]:
    """Return the files of a log from which the state of a version is made: the last whole checkpoint before, and what
    follows it."""
    commits, checkpoints = dict[str, int](), dict[int, dict[str, int]]()
    for name in names:
        if match := _COMMIT.fullmatch(name):
            commits[name] = int(match[1])
        elif match := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(match[1]), {})[name] = int(match[3] or 1)
    whole = [at for at, parts in checkpoints.items() if at <= version and _is_whole(parts)]
    first = max(whole, default=-1)
    # That of the checkpoint's own version says when it was made.
    return [*checkpoints.get(first, ()), *(name for name, at in commits.items() if first <= at <= version)]


def _is_whole(parts: dict[str, int]) -> bool:
    """Return whether a checkpoint, which is one file or several, has all of them."""
    return any(count == 1 or sum(each == count for each in parts.values()) == count for count in parts.values())


@contextmanager
def copied(folder: str, rule: PathRule | None, version: int | None) -> Iterator[str]:
    """A folder that holds the log of a table, and nothing else of it.

    Args:
        version: the only one that will be asked for; None means any.

    Raises:
        OSError: the store can't be asked.
        InvalidInput: the rule refuses the table.
    """
    log = f"{folder.rstrip('/')}/{LOG}"
    storage = storage_of(log)
    with tempfile.TemporaryDirectory(prefix="parallelrun-") as here:
        (target := Path(here, LOG)).mkdir()
        versions = _versions(storage, log, rule)
        names = list(versions) if version is None else needed(versions, version)
        for each in names:
            check_size(folder, each, versions[each].size_bytes)

        def copy(name: str) -> None:
            with open(target / name, "xb", buffering=0) as file:
                storage.copy(f"{log}/{name}", versions[name], file.fileno(), rule=rule)
            # Which version was the last one at some time, the library tells by them.
            os.utime(target / name, (versions[name].modified, versions[name].modified))

        in_threads(copy, names, _AT_ONCE)
        yield here


def _versions(storage: Storage, log: str, rule: PathRule | None) -> dict[str, Version]:
    """Return the files of a log that may matter, each with its version."""
    listing = storage.files(log, rule=rule)
    by_name: dict[str, Version] = {}
    for _, names in listing:
        versions = listing.versions or [storage.version(f"{log}/{os.fsdecode(name)}") for name in names]
        pairs = ((os.fsdecode(name), version) for name, version in zip(names, versions, strict=True))
        by_name |= {name: version for name, version in pairs if _COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name)}
    return by_name
