"""Entries of the outbox: a file for each end of a job, by job and generation, in a folder for each destination."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.durable_files import sync_folder
from parallelrun_core.ids import is_job_id
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER, listed

_NOTE_BYTES: Final = 128


class Attempts(msgspec.Struct, kw_only=True):
    """The attempts to deliver an entry. Times are those of Redis."""

    count: int = 0
    first_at: float = 0.0
    next_at: float = 0.0
    """Time when it is due."""


def enqueue(notes: Path, job_id: str, generation: int) -> None:
    """Owe the end of a job that is about to be recorded, durably.

    Before, and not after: a leader that dies in between leaves a note that waits for the end, and not an end of which
    nobody is told.
    """
    notes.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(notes / f"{job_id}.{generation}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    sync_folder(notes)
    sync_folder(notes.parent)


def owed(notes: Path) -> list[str]:
    """The names of the ends that are owed."""
    return list(filter(job_of, listed(notes)))


def job_of(name: str) -> tuple[str, int] | None:
    """The job and the generation by a name; None: it is no such name."""
    job_id, _, generation = name.rpartition(".")
    return (job_id, int(generation)) if is_job_id(job_id) and generation.isdecimal() else None


def attempts_of(notes: Path, name: str) -> Attempts | None:
    """Return what became of one so far; None: it is no longer owed."""
    try:
        return _decoded((notes / name).read_bytes())
    except FileNotFoundError:
        return None


class OutboxEntry:
    """An entry that nobody else sees to meanwhile."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path, self._fd = path, fd
        self.attempts = _decoded(os.pread(fd, 4096, 0))

    def note(self) -> None:
        """Write down what has become of it, durably."""
        # Of one length, so that one write leaves nothing of a longer text behind.
        os.pwrite(self._fd, msgspec.json.encode(self.attempts).ljust(_NOTE_BYTES), 0)
        os.fsync(self._fd)

    def remove(self) -> None:
        """Remove the entry, which is delivered or given up."""
        self._path.unlink(missing_ok=True)


@contextmanager
def taken(notes: Path, name: str) -> Iterator[OutboxEntry | None]:
    """Return one of them, for as long as this lasts; None: another process has it, or it is no longer owed."""
    path = notes / name
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield OutboxEntry(path, fd) if path.exists() else None
    except BlockingIOError:
        yield None
    finally:
        os.close(fd)


def _decoded(text: bytes) -> Attempts:
    # Half of it, after a crash: it begins anew, and is then sent once more.
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=Attempts)
    return Attempts()
