"""Deletes answers that the scripts of a job have remembered. Only of one that has ended: nobody writes then."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from parallelrun_api.views.remembered import MemoryFile, key_of, lines_of, memory_files
from parallelrun_core.answers.remembered import Forgotten
from parallelrun_core.errors import Conflict, NotFound, Unavailable
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.service import telemetry
from parallelrun_core.store.registry import Registry
from parallelrun_core.untrusted.paths import open_beneath

log = telemetry.logger()

_MODE: Final = 0o644
"""Workers read what was remembered, also those of other users."""


def forget(folder: JobFolder, registry: Registry, key: str | None) -> Forgotten:
    """Delete what a job has remembered under a key, or all of it, durably. What other jobs have taken over stays
    with them.

    Args:
        key: None: all keys.

    Raises:
        Unavailable: the job has just ended, and is being cleaned up.
        Conflict: it has not ended, or its files can't be changed here.
        RedisError: Redis is away.
    """
    if not folder.has_ended:
        raise Conflict(f"Job {folder.job_id} has not ended, and its workers remember: cancel it first; resume it then.")
    if registry.is_active(folder.job_id):
        raise Unavailable(f"Job {folder.job_id} has just ended, and is not cleared up yet. Try again soon.")
    count = freed = 0
    for file in memory_files(folder):
        try:
            lines, size = _without(folder, file, key)
        except NotFound:
            continue
        except OSError as error:
            raise Conflict(
                f"{file.log} of job {folder.job_id} can't be changed by the server: {error.strerror}. It goes with the "
                "job, by `job delete`."
            ) from error
        count, freed = count + lines, freed + size
    if freed:
        os.utime(folder.path)  # so that its size is measured again
    log.info("answers_forgotten", job_id=folder.job_id, count=count, bytes=freed)
    return Forgotten(count=count, bytes=freed)


def _without(folder: JobFolder, memory: MemoryFile, key: str | None) -> tuple[int, int]:
    """Take the lines of a key out of a file; returns how many these were, and their bytes."""
    parent, _, name = memory.path.rpartition("/")
    with os.fdopen(open_beneath(folder.path, memory.path), "rb") as file:
        keys = ((key_of(line), len(line)) for _, line in lines_of(file))
        gone = [size for each, size in keys if each is not None and key in (None, each)]
        if gone:
            at = open_beneath(folder.path, parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                if key is None:
                    os.unlink(name, dir_fd=at)
                else:
                    _replace(at, name, (line for _, line in lines_of(file) if key_of(line) != key))
                os.fsync(at)
            finally:
                os.close(at)
    return len(gone), sum(gone)


def _replace(at: int, name: str, lines: Iterable[bytes]) -> None:
    """Give a file in an open folder other lines, durably: whoever is killed in between leaves the old ones.

    It is another file then: one that a job which resumes from this one has linked stays as it is.
    """
    beside = f".{name}.{secrets.token_hex(6)}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE, dir_fd=at)
    try:
        with os.fdopen(fd, "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, name, src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=at)
        raise
