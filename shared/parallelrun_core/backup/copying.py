"""Backup and restore of a root folder.

A backup is consistent while the cluster runs, because everything that names something is copied before what it names:
documents before jobs, and in a job results before decisions, decisions before rows. What is named was durable when it
was named, nothing durable ever changes, and no sweep of retention works meanwhile. What was appended since is more than
is needed: readers pass over a last record that is not whole.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_durably, sync_folder, sync_tree
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER, job_ids, jobs_of, listed, retention_of
from parallelrun_core.retention.sweep import locked

_RECORD: Final = "backup.json"
_DATA: Final = "root"
_OF_EMBEDDED: Final = "data"
"""The root folder below the one that `parallelrun up --root` names."""
_REDIS_OF_EMBEDDED: Final = "redis"
_NAMES_FIRST: Final = (
    "results", "reopened.", "result", "cancel.", "steps", "job.json", "decisions.", "retries.", "costs.",
)  # fmt: skip
_ROWS_LAST: Final = ("journals", "keys", "manifest.", "parts", "outputs", "logs")
_REFERRED_LAST: Final = ("jobs", "code", "asset_files", "uploads", "blobstore")
_LEFT_OUT: Final = (".removed-", ".creating-", ".incoming-", ".new-", ".damaged-", ".lock")


class Backup(msgspec.Struct, kw_only=True, frozen=True):
    """`backup.json`, which is written last: a backup without it is not whole."""

    schema: int = SCHEMA
    at: float
    """Time when it began, in seconds since the epoch."""
    release: str
    root: str
    """The root folder that it is of: jobs name absolute paths."""
    files: int
    bytes: int
    copied: int
    """Files that were copied; others were there from an earlier backup, and have not changed."""


def back_up(root: Path, target: Path, *, now: Callable[[], float] = time.time) -> Backup:
    """Copy a root folder, or bring an earlier copy of it up to date; durable when this returns.

    Raises:
        InvalidInput: there is no root folder; the target is below it, or something else than a backup of it.
        Conflict: a sweep of retention works now.
        OSError: a file can't be read or written.
    """
    root = data_of(root)
    if target.resolve().is_relative_to(root.resolve()):
        raise InvalidInput.at("TARGET", f"{target} is below the root folder", "name a folder on another disk")
    earlier = backup_of(target)
    if earlier is None and target.exists() and any(target.iterdir()):
        raise InvalidInput.at("TARGET", f"{target} is neither empty nor a whole backup", "name another folder")
    if earlier is not None and earlier.root != str(root.resolve()):
        raise InvalidInput.at("TARGET", f"{target} is a backup of {earlier.root}", "name another folder")
    copy = _Copy(root, target / _DATA)
    target.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    retention_of(root).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    with locked(retention_of(root)) as is_held:
        if not is_held:
            raise Conflict("A sweep of retention works now. Try again in a minute.")
        began = now()
        (target / _RECORD).unlink(missing_ok=True)
        copy.run()
        backup = Backup(
            at=began, release=version("parallelrun"), root=str(root.resolve()), files=copy.files, bytes=copy.bytes,
            copied=copy.copied,
        )  # fmt: skip
    sync_tree(target / _DATA)
    replace_durably(target / _RECORD, encode(backup), mode=PRIVATE_FILE)
    return backup


def backup_of(target: Path) -> Backup | None:
    """Read what a folder is a backup of; None: it is none, or not whole. Raises CorruptLog, NewerSchema."""
    path = target / _RECORD
    try:
        return decode(path.read_bytes(), Backup, path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def data_of(folder: Path) -> Path:
    """Return the root folder in a backup or a folder of `parallelrun up`, or the folder itself if it is one.

    Raises:
        InvalidInput: it is none of these.
    """
    if (folder / _RECORD).exists():
        return folder / _DATA
    if not folder.is_dir():
        raise InvalidInput.at("ROOT", f"there is no folder {str(folder)!r}")
    for root in (folder / _OF_EMBEDDED, folder):
        if jobs_of(root).is_dir() or retention_of(root).is_dir():
            return root
    raise InvalidInput.at("ROOT", f"{str(folder)!r} is no root folder of a cluster, nor a backup of one")


def restore(source: Path, root: Path) -> tuple[Path, Backup]:
    """Copy a backup to where a root folder is to be; it appears at once, and durably.

    Args:
        root: the folder of the `parallelrun up` that was backed up stands for the root folder in it.

    Returns:
        The root folder, and the record of the backup.

    Raises:
        InvalidInput: there is no whole backup, or there is something at that place already.
        OSError: a file can't be read or written.
    """
    backup = backup_of(source)
    if backup is None:
        raise InvalidInput.at("BACKUP", f"{source} is not a whole backup: it has no {_RECORD}")
    if backup.root == str((root / _OF_EMBEDDED).resolve()):
        _refuse_filled(root / _REDIS_OF_EMBEDDED)
        root /= _OF_EMBEDDED
    _refuse_filled(root)
    beside = root.with_name(f".restoring-{root.name}")
    shutil.rmtree(beside, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source / _DATA, beside, symlinks=True)
    sync_tree(beside)
    if root.exists():
        root.rmdir()
    beside.rename(root)
    sync_folder(root.parent)
    return root, backup


def _refuse_filled(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput.at("ROOT", f"{folder} is not empty", "move it away first")


class _Copy:
    """A copy of a root folder.

    Args:
        target: the folder that becomes like it.
    """

    def __init__(self, root: Path, target: Path) -> None:
        self.files = self.bytes = self.copied = 0
        self._root = root
        self._target = target
        self._seen: set[str] = set()

    def run(self) -> None:
        """Copy everything, then remove what is no longer in the root folder."""
        for path in self._in_order():
            self._copy(path)
        self._remove_others()

    def _in_order(self) -> Iterator[Path]:
        """Yield all files, what names others before these."""
        names = sorted(entry.name for entry in os.scandir(self._root))
        for name in (each for each in names if each not in _REFERRED_LAST):
            yield from _files_of(self._root / name)
        for job_id in job_ids(self._root):
            yield from self._of_job(jobs_of(self._root) / job_id)
        for name in _REFERRED_LAST[1:]:
            yield from _files_of(self._root / name)

    @staticmethod
    def _of_job(job: Path) -> Iterator[Path]:
        def place(name: str) -> tuple[int, str]:
            for number, beginning in enumerate(_NAMES_FIRST):
                if name.startswith(beginning):
                    return number, name
            for number, beginning in enumerate(_ROWS_LAST):
                if name.startswith(beginning):
                    return 200 + number, name
            return 100, name

        for name in sorted(listed(job), key=place):
            yield from _files_of(job / name)

    def _copy(self, path: Path) -> None:
        relative = path.relative_to(self._root)
        target = self._target / relative
        try:
            status = path.lstat()
            target.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            if not self._is_unchanged(status, target):
                target.unlink(missing_ok=True)
                shutil.copy2(path, target, follow_symlinks=False)
                self.copied += 1
        except FileNotFoundError:  # replaced or removed since it was listed, such as a claim of yesterday
            return
        self.files += 1
        self.bytes += status.st_size
        self._seen.add(str(relative))

    @staticmethod
    def _is_unchanged(status: os.stat_result, target: Path) -> bool:
        try:
            copied = target.lstat()
        except FileNotFoundError:
            return False
        return (copied.st_size, copied.st_mtime_ns) == (status.st_size, status.st_mtime_ns)

    def _remove_others(self) -> None:
        for current, folders, names in os.walk(self._target, topdown=False):
            for name in names:
                path = Path(current, name)
                if str(path.relative_to(self._target)) not in self._seen:
                    path.unlink()
            for name in folders:
                path = Path(current, name)
                if not path.is_symlink() and not any(path.iterdir()) and not self._is_there(path):
                    path.rmdir()

    def _is_there(self, folder: Path) -> bool:
        return (self._root / folder.relative_to(self._target)).is_dir()


def _files_of(path: Path) -> Iterator[Path]:
    if path.name.startswith(_LEFT_OUT):
        return
    if not path.is_dir() or path.is_symlink():
        if path.exists() or path.is_symlink():
            yield path
        return
    for current, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(_LEFT_OUT))
        for name in sorted(names):
            if not name.startswith(_LEFT_OUT) and not Path(current, name).is_socket():
                yield Path(current, name)
        for name in folders:
            if Path(current, name).is_symlink():
                yield Path(current, name)
