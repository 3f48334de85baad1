"""A new file beside the one that it becomes: invisible until it is whole and durable."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.storage.local.direct import DirectFile
from parallelrun_core.storage.local.publishing import publish
from parallelrun_core.storage.path_rule import PathRule

_MARK: Final = ".merging-"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def unfinished_prefix(owner: str) -> str:
    """Return how the names of the files begin that are on their way for this owner."""
    return f"{_MARK}{owner}-"


class LocalNewFile(DirectFile):
    """A local file on its way, as `interface.NewFile` describes it."""

    def __init__(self, target: Path, owner: str, rule: PathRule | None = None) -> None:
        self._named = target
        self._folder = _opened(target.parent, rule)
        here = Path(f"/proc/self/fd/{self._folder}")
        self._target = here / target.name
        self._beside = here / f"{unfinished_prefix(owner)}{secrets.token_hex(8)}"
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


def unfinished(target: Path, owner: str) -> list[str]:
    """The files beside the target that are on their way for this owner, or were when their process died."""
    return [str(path) for path in target.parent.glob(f"{glob.escape(unfinished_prefix(owner))}*")]
