"""A new file beside the one that it becomes: invisible until it is whole and durable, and published in one step."""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import stat
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.errors import Conflict
from parallelrun_core.storage.local.direct import DirectFile
from parallelrun_core.storage.path_rule import PathRule

_MARK: Final = ".merging-"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def unfinished_prefix(job_id: str) -> str:
    """Return how the names of the files begin that are on their way for this job."""
    return f"{_MARK}{job_id}-"


class LocalNewFile(DirectFile):
    """A local file on its way, as `interface.NewFile` describes it."""

    def __init__(self, target: Path, job_id: str, rule: PathRule | None = None) -> None:
        self._named = target
        self._folder = _opened(target.parent, rule)
        here = Path(f"/proc/self/fd/{self._folder}")
        self._target = here / target.name
        self._beside = here / f"{unfinished_prefix(job_id)}{secrets.token_hex(8)}"
        try:
            super().__init__(self._beside)
        except BaseException:
            os.close(self._folder)
            raise

    def __enter__(self) -> LocalNewFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._folder >= 0:
            self._beside.unlink(missing_ok=True)
            os.close(self._folder)
            self._folder = -1

    def publish(self, own_hashes: Container[str]) -> None:
        self.close()  # a file server keeps a file that is removed while it is open, under another name
        publish(self._beside, self._target, own_hashes, name=str(self._named))
        os.fsync(self._folder)


def _opened(folder: Path, rule: PathRule | None) -> int:
    """Open a folder once, after creating it with those above it; all that is done in it is done beneath this.

    Raises:
        UnsafePath: the rule refuses the folder.
        OSError: it can't be created.
    """
    fd = _entered(folder, rule)
    try:
        if rule is not None:
            rule.check_opened(fd, bytes(folder), is_written=True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _entered(folder: Path, rule: PathRule | None) -> int:
    """Open a folder, or create it where the rule lets folders be on the way to those that may be written to."""
    with suppress(FileNotFoundError):
        return os.open(folder, _FOLDER)
    above = _entered(folder.parent, rule)
    try:
        if rule is not None:
            rule.check_new_folder(above, folder.name, bytes(folder))
        with suppress(FileExistsError):
            os.mkdir(folder.name, dir_fd=above)
        return os.open(folder.name, _FOLDER, dir_fd=above)
    finally:
        os.close(above)


def unfinished(target: Path, job_id: str) -> list[str]:
    """The files beside the target that are on their way for this job, or were when their process died."""
    return [str(path) for path in target.parent.glob(f"{glob.escape(unfinished_prefix(job_id))}*")]


def publish(source: Path, target: Path, own_hashes: Container[str], *, name: str) -> None:
    """Move a file to its final name. Only an earlier output of the same job is replaced.

    When a job is submitted, nothing is there. By its end, another job may have published an output of that name.

    Args:
        own_hashes: the sha256 of what this job may have put there before.
        name: that of the target for people.

    Raises:
        Conflict: something else is there.
    """
    try:
        os.link(source, target)  # unlike a rename, this replaces nothing
    except FileExistsError:
        if not _is_same(source, target):  # a file server may answer so to its own retry
            _replace(source, target, own_hashes, name)
    except OSError:  # not every file system has links; any other problem shows in the rename
        _replace(source, target, own_hashes, name)
    source.unlink(missing_ok=True)


def _is_same(source: Path, target: Path) -> bool:
    try:
        return os.path.samestat(os.stat(source), os.lstat(target))
    except FileNotFoundError:
        return False


def _replace(source: Path, target: Path, own_hashes: Container[str], name: str) -> None:
    if os.path.lexists(target) and _sha256(target) not in own_hashes:
        raise Conflict(
            f"{name!r} appeared after the job was submitted, and existing files are never overwritten. "
            "The rows are kept: move that file away, then resume the job."
        )
    os.rename(source, target)


def _sha256(path: Path) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # a pipe would never end
            return hashlib.file_digest(file, "sha256").hexdigest() if is_file else ""
    except (FileNotFoundError, IsADirectoryError):
        return ""  # a folder, or a link that leads nowhere
