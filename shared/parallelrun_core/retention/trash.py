"""Deletion of a file or folder so that a process may be killed at any step: first it gets another name beside its own,
then all of it is removed. Whoever finds such a name later finishes that, or gives the old name back.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parallelrun_core.durable_files import sync_folder

_REMOVED: Final = ".removed-"


def set_aside(path: Path) -> Path | None:
    """Rename a folder, so that nobody finds it any more; None: it isn't there."""
    aside = path.with_name(_REMOVED + path.name)
    try:
        path.rename(aside)
    except FileNotFoundError:
        return None
    sync_folder(path.parent)
    return aside


def put_back(aside: Path) -> bool:
    """Give the old name back; returns False if something else has it by now."""
    path = name_of(aside)
    if path.exists():
        return False
    aside.rename(path)
    sync_folder(path.parent)
    return True


def name_of(aside: Path) -> Path:
    """Return the old path of something that was set aside."""
    return aside.with_name(aside.name.removeprefix(_REMOVED))


def list_set_aside(store: Path) -> Iterator[Path]:
    """Yield what was set aside in a folder, also by a process that was killed before it removed it."""
    yield from store.glob(f"{_REMOVED}*")


def discard(aside: Path) -> bool:
    """Remove what was set aside; returns False if a part of it can't be removed, as when it belongs to another user."""
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)
    return not aside.exists()
