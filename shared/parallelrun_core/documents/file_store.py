"""Documents that are the files of a folder.

A file is written under a name that begins with a dot, synced, and then given its name: readers need no lock. Writers
that replace or remove hold a lock of the folder meanwhile, so that "only if unchanged" is one step.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from parallelrun_core.documents.store import DocumentExists, DocumentMissing, Stored, VersionMismatch
from parallelrun_core.durable_files import has_no_links, link_once, replace_durably, sync_folder, write_once
from parallelrun_core.errors import CorruptLog
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER

MAX_BYTES: Final = 64 << 20
"""A document is held in memory whole."""
_LOCK: Final = ".lock"
_MAX_NAME: Final = 255 - len(".." + "f" * 12)
"""Bytes: a file is written under its name with this around it."""


class FileStore:
    """The files of a folder that is made when something is first written.

    Args:
        root: the folder around it, which is there already.
        folder: its own path below `root`, such as "computes".
        max_bytes: a larger file is no document.
        follows_links: a link to a file counts as that file, as where an operator mounts definitions. False where users
            can write into the folder, and a link could lead anywhere.
        durable: False: a power cut may take what `create` has written, though others have seen it.
    """

    def __init__(
        self,
        root: Path,
        folder: str,
        *,
        max_bytes: int = MAX_BYTES,
        follows_links: bool = True,
        durable: bool = True,
    ) -> None:
        self._root: Final = root
        self._relative: Final = folder
        self._folder: Final = root / folder
        self._max_bytes: Final = max_bytes
        self._follows_links: Final = follows_links
        self._durable: Final = durable
        self._is_anchored = False

    def read(self, name: str) -> Stored:
        path = self._readable(name)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if self._follows_links else os.O_NOFOLLOW)
        try:
            fd = os.open(path, flags)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DocumentMissing(name) from error
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise CorruptLog(f"{path} is a link") from error
            raise
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise CorruptLog(f"{path} is no file")
            data = file.read(min(status.st_size, self._max_bytes) + 1)
        if len(data) > self._max_bytes:
            raise CorruptLog(f"{path} is larger than {self._max_bytes:,} bytes")
        return Stored(data, _version(status))

    def location(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def version(self, name: str) -> str:
        try:
            return _version(os.stat(self._readable(name)))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DocumentMissing(name) from error

    def exists(self, name: str) -> bool:
        return _is_name(name) and os.path.lexists(self._path(name))

    def create(self, name: str, data: bytes, *, if_store_exists: bool = False) -> None:
        path = self._path(name)
        if not if_store_exists:
            self.make()
        try:
            write_once(path, data, mode=PRIVATE_FILE, durable=self._durable)
        except FileExistsError as error:
            raise DocumentExists(name) from error
        except FileNotFoundError as error:
            raise DocumentMissing(self._relative) from error

    def create_from(self, source: Self, name: str) -> None:
        self.make()
        try:
            link_once(source._path(name), self._path(name))
        except FileExistsError as error:
            raise DocumentExists(name) from error
        except FileNotFoundError as error:
            raise DocumentMissing(name) from error

    def replace(self, name: str, data: bytes, *, if_version: str | None = None) -> bool:
        path = self._path(name)
        with self.locked():
            if if_version is not None:
                self._check(name, if_version)
            if not os.path.lexists(path):
                try:
                    write_once(path, data, mode=PRIVATE_FILE)
                    return True
                except FileExistsError:  # `create` takes no lock
                    pass
                except OSError as error:  # where there are no links, nothing can be created without this lock
                    if not has_no_links(error):
                        raise
                    replace_durably(path, data, mode=PRIVATE_FILE)
                    return True
            replace_durably(path, data, mode=PRIVATE_FILE)
            return False

    def remove(self, name: str) -> None:
        if not self.exists(name):
            raise DocumentMissing(name)
        with self.locked():
            try:
                os.unlink(self._path(name))
            except FileNotFoundError as error:
                raise DocumentMissing(name) from error
            sync_folder(self._folder)

    def make(self) -> None:
        if self._is_anchored and self._folder.is_dir():
            return
        folder = self._root
        self._root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        for part in self._relative.split("/"):
            (folder / part).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            sync_folder(folder)  # also if it was there: who made it may have been killed before it did so
            folder /= part
        self._is_anchored = True

    def names(self) -> list[str]:
        return self._entries(of_folders=False)

    def child(self, name: str) -> Self:
        path = f"{self._relative}/{_checked(name)}"
        return type(self)(
            self._root,
            path,
            max_bytes=self._max_bytes,
            follows_links=self._follows_links,
            durable=self._durable,
        )

    def children(self) -> list[str]:
        return self._entries(of_folders=True)

    def remove_child(self, name: str) -> None:
        removed = self._folder / f".removed-{secrets.token_hex(6)}"
        if not self.exists(name):
            raise DocumentMissing(name)
        with self.locked():
            try:
                os.rename(self._path(name), removed)
            except FileNotFoundError as error:
                raise DocumentMissing(name) from error
            sync_folder(self._folder)
        shutil.rmtree(removed, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.make()
        fd = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _path(self, name: str) -> str:
        return self.location(_checked(name))

    def _readable(self, name: str) -> str:
        if not _is_name(name):
            raise DocumentMissing(name)
        return self.location(name)

    def _entries(self, *, of_folders: bool) -> list[str]:
        try:
            with os.scandir(self._folder) as entries:
                return sorted(each.name for each in entries if each.name[0] != "." and each.is_dir() == of_folders)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _check(self, name: str, expected_version: str) -> None:
        try:
            if self.version(name) == expected_version:
                return
        except DocumentMissing as error:
            raise VersionMismatch(name) from error
        raise VersionMismatch(name)


def _version(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}.{status.st_ino}.{status.st_size}"


def _is_name(name: str) -> bool:
    if not name or name[0] == "." or "/" in name or "\0" in name:
        return False
    return len(name if name.isascii() else os.fsencode(name)) <= _MAX_NAME


def _checked(name: str) -> str:
    if not _is_name(name):
        raise ValueError(f"{name[:80]!r} can't be the name of a document")
    return name
