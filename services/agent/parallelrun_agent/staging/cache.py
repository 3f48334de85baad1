"""Objects on the node's disk: kept by URL and version, the least recently used removed first, never one in use.

    objects/<sha256>       one version of one object, or a part of it, read-only
    objects/.new-<random>  one that is being fetched, locked by whoever fetches it

Whoever uses an object has a hard link to it, and so has it for as long as it is needed, whatever happens here: a link
count above 1 means "in use". That also holds for two agents that share the folder, and for an agent that has died,
whose links go with its working folder. Room is reserved on the disk before the first byte is fetched.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_agent.staging.flushed import forget_unflushed
from parallelrun_agent.staging.parts import Part
from parallelrun_core.storage.interface import Version

_NEW: Final = ".new-"
_KEEP: Final = 0.9
"""The part of the limit that eviction leaves, so that not every new object has to evict."""


_BLINDLY: Final = 0.05
"""After this part of the limit was fetched, what other agents have fetched meanwhile is counted, too."""


class NoRoom(Exception):
    """Too much of the cache is in use for one more object."""


class _Entry(NamedTuple):
    used_at: float
    size: int
    path: str
    is_in_use: bool


class StageCache:
    """For any number of threads and processes.

    Args:
        folder: created if missing, private; on the file system of those who use the objects.
        max_bytes: what it may hold, with what is in use and on its way.

    Raises:
        OSError: the folder can't be created or read.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder / "objects"
        self.max_bytes = max_bytes
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        forget_unflushed(self.folder)
        self._lock = threading.Lock()
        self._used = self._admitted = self._unseen = 0
        self.refresh()

    def admit(self, size: int) -> bool:
        """Whether so much more may be in use at the same time on behalf of this agent; if so, `leave` must follow.

        Without this, two mini-batches that are each half there could wait for each other's room.
        """
        with self._lock:
            if self._admitted + size > self.max_bytes:
                return False
            self._admitted += size
            return True

    def leave(self, size: int) -> None:
        """So much is not in use any more."""
        with self._lock:
            self._admitted -= size

    def take(self, url: str, version: Version, target: str, part: Part | None = None) -> bool:
        """Link an object, or a part of one, to where it is to be used, if it is here; whether it was.

        Raises:
            OSError: it can't be linked there.
        """
        entry = self._path(url, version, part)
        try:
            os.link(entry, target)
        except FileNotFoundError:
            return False
        with suppress(FileNotFoundError):  # evicted in this moment: the link has it all the same
            os.utime(entry)
        return True

    def begin(self, url: str, version: Version, part: Part | None = None) -> NewObject:
        """A file for an object, or a part of one, that is to be fetched.

        Raises:
            NoRoom: it would have to wait until something is not in use any more.
            OSError: the disk is full, or fails.
        """
        size = version.size_bytes if part is None else part.end - part.start
        self.reserve(size)
        try:
            return NewObject(self, self._path(url, version, part), f"{self.folder}/{_NEW}{secrets.token_hex(12)}", size)
        except BaseException:
            self.give_back(size)
            raise

    def put(self, url: str, version: Version, content: bytes, target: str) -> None:
        """Add a small object, for which there is room (`reserve`), and link it to where it is to be used.

        Raises:
            OSError: the disk is full, or fails, or it can't be linked there. There is no more room for it then.
        """
        try:
            # As few system calls as it takes: of small objects, they are most of what an object costs.
            with _LockedFile(f"{self.folder}/{_NEW}{secrets.token_hex(12)}") as new:
                view = memoryview(content)
                while view:
                    view = view[os.write(new.fd, view) :]
                new.rename(self._path(url, version, None), linked_at=target)
        except BaseException:
            self.give_back(version.size_bytes)
            raise

    def reserve(self, size: int) -> None:
        """Have room for so much more.

        Raises:
            NoRoom: see `begin`.
        """
        with self._lock:
            self._unseen += size
            if self._unseen > self.max_bytes * _BLINDLY:
                self._used = sum(entry.size for entry in self._entries())
                self._unseen = 0
            if self._used + size > self.max_bytes:
                self._evict(size)
            self._used += size

    def give_back(self, size: int) -> None:
        """This much that was to be fetched isn't there."""
        with self._lock:
            self._used -= size

    def refresh(self) -> None:
        """See what is there: other agents fetch and evict, too, and some have died while they fetched."""
        for path in self.folder.glob(f"{_NEW}*"):
            _remove_if_abandoned(path)
        with self._lock:
            self._used = sum(entry.size for entry in self._entries())

    def _evict(self, wanted: int) -> None:
        entries = sorted(self._entries())
        self._used = sum(entry.size for entry in entries)
        limit = min(self.max_bytes - wanted, int(self.max_bytes * _KEEP))
        for entry in entries:
            if self._used <= limit:
                break
            if not entry.is_in_use:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)
                self._used -= entry.size
        if self._used + wanted > self.max_bytes:
            raise NoRoom(f"{self._used >> 20:,} MiB of at most {self.max_bytes >> 20:,} are in use")

    def _entries(self) -> Iterator[_Entry]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    is_in_use = status.st_nlink > 1 or entry.name.startswith(_NEW)
                    yield _Entry(status.st_mtime, status.st_size, entry.path, is_in_use)

    def _path(self, url: str, version: Version, part: Part | None) -> str:
        of = "" if part is None or part == (0, version.size_bytes, None) else f"\0{part}"
        name = f"{url}\0{version.tag or version.modified}\0{version.size_bytes}{of}".encode(errors="surrogateescape")
        return f"{self.folder}/{hashlib.sha256(name).hexdigest()}"


class _LockedFile:
    """A new file that no agent takes for abandoned. What was not renamed by the end of the context is gone."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_renamed = False
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        fcntl.flock(self.fd, fcntl.LOCK_EX)

    def __enter__(self) -> _LockedFile:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_renamed:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
        os.close(self.fd)

    def rename(self, name: str, *, linked_at: str) -> None:
        """Give it its name, after a link, so that it is in use before anybody could evict it.

        Raises:
            OSError: it can't be linked there.
        """
        os.link(self._path, linked_at)
        os.rename(self._path, name)
        self._is_renamed = True


class NewObject:
    """A file that is being filled. Used in a `with` statement: what was not kept by its end is gone.

    Attributes:
        fd: to write to, from the beginning.
    """

    def __init__(self, cache: StageCache, target: str, path: str, size: int) -> None:
        self._cache, self._target, self._size = cache, target, size
        self._is_kept = False
        self._file = _LockedFile(path)
        self.fd = self._file.fd
        try:
            if not os.fstat(self.fd).st_nlink:
                raise OSError(errno.EAGAIN, "another agent has just taken it for abandoned", path)
            if size:
                os.posix_fallocate(self.fd, 0, size)
        except BaseException:
            self._file.__exit__()
            raise

    def __enter__(self) -> NewObject:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            self._cache.give_back(self._size)
        self._file.__exit__()

    def grow(self, size: int) -> None:
        """It has so much more than was thought.

        Raises:
            NoRoom: it doesn't fit.
            OSError: it never will.
        """
        if self._size + size > self._cache.max_bytes:
            limit = f"the {self._cache.max_bytes >> 20:,} MiB that --stage-bytes allows on this node"
            raise OSError(errno.E2BIG, f"its record goes on for more than {limit}")
        self._cache.reserve(size)
        self._size += size

    def keep(self, used_at: str) -> None:
        """All of it is there: put it into the cache, and link it to where it is to be used.

        Raises:
            OSError: it can't be linked there.
        """
        self._file.rename(self._target, linked_at=used_at)
        self._is_kept = True


def _remove_if_abandoned(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return
    finally:
        os.close(fd)
