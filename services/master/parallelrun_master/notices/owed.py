"""Which notices are owed: a file for each, by job and generation, in one folder of the volume."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.folder.files import sync_folder
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER, notices_of
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import is_job_id
from parallelrun_core.spec.notify import Notify

_NOTE_BYTES: Final = 128


class Attempts(msgspec.Struct, kw_only=True):
    """What became of a notice so far. Times are those of Redis."""

    count: int = 0
    first_at: float = 0.0
    next_at: float = 0.0
    """When it is due."""


def owe(root: Path, job_id: str, generation: int) -> None:
    """Owe the notice of a job whose end is about to be recorded, durably.

    Before, and not after: a leader that dies in between leaves a notice that waits for the end, and not an end of which
    nobody is told.
    """
    folder = notices_of(root)
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(folder / f"{job_id}.{generation}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    sync_folder(folder)
    sync_folder(root)


def notify_of(record: JobRecord) -> Notify | None:
    """Who is told of the end of a job.

    Raises:
        ValueError: a later release has written it in another way.
    """
    given = record.spec.get("notify")
    return Notify.model_validate(given) if given else None


def owed(root: Path) -> list[str]:
    """The names of the notices that are owed."""
    try:
        return [path.name for path in notices_of(root).iterdir() if job_of(path.name)]
    except FileNotFoundError:
        return []


def job_of(name: str) -> tuple[str, int] | None:
    """The job and the generation of a notice by its name; None: it is no notice."""
    job_id, _, generation = name.rpartition(".")
    return (job_id, int(generation)) if is_job_id(job_id) and generation.isdecimal() else None


def attempts_of(root: Path, name: str) -> Attempts | None:
    """What became of a notice so far; None: it is no longer owed."""
    try:
        return _decoded((notices_of(root) / name).read_bytes())
    except FileNotFoundError:
        return None


class Owed:
    """A notice that nobody else sends meanwhile."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path, self._fd = path, fd
        self.attempts = _decoded(os.pread(fd, 4096, 0))

    def note(self) -> None:
        """Write down what has become of it, durably."""
        # Of one length, so that one write leaves nothing of a longer text behind.
        os.pwrite(self._fd, msgspec.json.encode(self.attempts).ljust(_NOTE_BYTES), 0)
        os.fsync(self._fd)

    def settle(self) -> None:
        """It is no longer owed."""
        self._path.unlink(missing_ok=True)


@contextmanager
def taken(root: Path, name: str) -> Iterator[Owed | None]:
    """A notice, for as long as this lasts; None: another process has it, or it is no longer owed."""
    path = notices_of(root) / name
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Owed(path, fd) if path.exists() else None
    except BlockingIOError:
        yield None
    finally:
        os.close(fd)


def _decoded(text: bytes) -> Attempts:
    # Half of it, after a crash: it begins anew, and is then sent once more.
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=Attempts)
    return Attempts()
