"""The integrity of stored snapshots: the name of one is the hash of a list of its files, with the hash of each.

The list is kept beside the snapshot. What is in the folder and not on the list was left there by somebody, such as
compiled modules, and is removed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from parallelrun_core.code.folder import SKIPPED_FOLDERS
from parallelrun_core.durable_files import replace_file
from parallelrun_core.layout import make_store
from parallelrun_core.service.telemetry import logger

log = logger()

_LIST: Final = ".files"
_ASIDE: Final = ".damaged-"
_EXECUTABLE: Final = "x"


class DamagedCode(Exception):
    """The stored code of a job is not what was submitted."""


def digest_of(files: Mapping[str, str]) -> str:
    """The name of a snapshot.

    Args:
        files: path below the snapshot → sha256, with an `x` behind it if the file is executable.
    """
    return hashlib.sha256(_text(files)).hexdigest()


def write_list(snapshot: Path, files: Mapping[str, str]) -> None:
    """Put the list of a snapshot's files beside it."""
    replace_file(list_of(snapshot), _text(files))


def add_snapshot(snapshot: Path, store: Path) -> None:
    """Move a new snapshot into the store. One that is there already is checked first, and replaced if it is damaged.

    Raises:
        OSError: it can't be moved.
    """
    stored = store / snapshot.name
    if stored.exists():
        try:
            check_snapshot(stored)
        except DamagedCode as damage:
            log.warning("snapshot_damaged", snapshot=snapshot.name, reason=str(damage), replaced=True)
            aside = store / f"{_ASIDE}{snapshot.parent.name}"
            with suppress(FileNotFoundError):  # somebody else replaces it, too
                stored.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
    list_of(snapshot).replace(list_of(stored))
    try:
        snapshot.rename(stored)
    except OSError:
        if not stored.is_dir():
            raise


def renew_snapshot(stored: Path) -> bool:
    """Let one more job use a snapshot that is stored already, so that no sweep takes it for an old one.

    Returns:
        False if it isn't there, or isn't what its name says: whoever has its files stores it again.

    Raises:
        OSError: it can't be read for now.
    """
    try:
        os.utime(list_of(stored))
        check_snapshot(stored)
    except (DamagedCode, FileNotFoundError):
        return False
    return True


def check_snapshot(folder: Path) -> None:
    """Make sure that a stored snapshot is what its name says, and has nothing else in it.

    Reads all of it: half a second for half a gigabyte.

    Raises:
        DamagedCode: it isn't.
        OSError: it can't be read for now.
    """
    listed = _wanted(folder)
    for other in list(_others(folder, listed)):
        _remove(other)
    for name, digest in listed.items():
        if _digest(folder / name) != digest:
            raise DamagedCode(f"The stored code {folder} is not what was submitted: {name} was changed.")


def damaged_files(folder: Path) -> Iterator[str]:
    """Yield the files of a stored snapshot that are not what was submitted, or gone; changes nothing.

    Raises:
        OSError: it can't be read for now.
    """
    try:
        listed = _wanted(folder)
    except DamagedCode:
        yield "."
        return
    for name, digest in listed.items():
        if _digest(folder / name) != digest:
            yield name


def _wanted(folder: Path) -> dict[str, str]:
    """The files of a snapshot by its list; for one without, such as an earlier release's, what there is must fit."""
    with suppress(OSError):
        text = list_of(folder).read_bytes()
        if hashlib.sha256(text).hexdigest() == folder.name:
            first, *rest = text.decode(errors="surrogateescape").split("\0")
            pairs = [each.partition("\n") for each in rest]  # a path may have any character but NUL
            return dict(zip([first, *(path for _, _, path in pairs)], [digest for digest, _, _ in pairs], strict=False))
    paths = sorted(_paths(folder, ""), key=lambda path: path.split("/"))
    files = {path: digest for path in paths if (digest := _digest(folder / path))}
    if digest_of(files) != folder.name:
        raise DamagedCode(f"The stored code {folder} is not what was submitted: it has another hash now.")
    return files


def _text(files: Mapping[str, str]) -> bytes:
    lines = (f"{path}\0{files[path]}\n" for path in sorted(files, key=lambda path: path.split("/")))
    return "".join(lines).encode(errors="surrogateescape")


def list_of(snapshot: Path) -> Path:
    """The file beside a snapshot with the list of its files."""
    return snapshot.with_name(snapshot.name + _LIST)


def _paths(folder: Path, prefix: str) -> Iterator[str]:
    """Return what is in a folder, but for what no snapshot has."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield prefix + entry.name
            elif entry.name not in SKIPPED_FOLDERS:
                yield from _paths(Path(entry.path), f"{prefix}{entry.name}/")


def _others(folder: Path, listed: Mapping[str, str]) -> Iterator[Path]:
    """Return what is in a folder and doesn't belong there, whole folders included."""
    folders = {"/".join(parts[:end]) for parts in (path.split("/") for path in listed) for end in range(1, len(parts))}
    yield from _not_among(folder, "", listed, folders)


def _not_among(folder: Path, prefix: str, listed: Mapping[str, str], folders: set[str]) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False) and path in folders:
                yield from _not_among(Path(entry.path), f"{path}/", listed, folders)
            elif path not in listed:
                yield Path(entry.path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
    if os.path.lexists(path):
        raise DamagedCode(f"The stored code {path.parent} is not what was submitted: {path.name} can't be removed.")


def _digest(path: Path) -> str:
    """The hash of a file as in the list; empty if it is none, or not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        if path.is_symlink() or not path.is_file():
            return ""
        raise
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        return ""
    with open(fd, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() + (_EXECUTABLE if mode & stat.S_IXUSR else "")


@contextmanager
def folder_beside(store: Path) -> Iterator[Path]:
    """A private folder on the volume of a store, removed afterwards."""
    make_store(store)
    beside = store / f".incoming-{secrets.token_hex(8)}"
    beside.mkdir(mode=0o700)
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)
