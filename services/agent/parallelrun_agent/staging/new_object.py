"""A file of the cache that is being filled: locked, so that no agent takes it for abandoned."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress

from parallelrun_agent.staging.room import Room
from parallelrun_agent.staging.shards import Shards


class LockedFile:
    """A new file of a shard. What was not renamed by the end of the context is gone.

    Raises:
        OSError: the disk is full, or fails.
    """

    def __init__(self, shards: Shards, shard: int) -> None:
        self._is_renamed = False
        while True:
            self._path = shards.new(shard)
            self.fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
            fcntl.flock(self.fd, fcntl.LOCK_EX)
            if os.fstat(self.fd).st_nlink:
                return
            os.close(self.fd)  # another agent has taken it for abandoned before it was locked

    def __enter__(self) -> LockedFile:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_renamed:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
        os.close(self.fd)

    def rename(self, path: str, *, linked_at: str) -> None:
        """Give it its name, after a link, so that it is in use before anybody could evict it.

        Raises:
            OSError: it can't be linked there.
        """
        os.link(self._path, linked_at)
        os.rename(self._path, path)
        self._is_renamed = True


class NewObject:
    """Room was reserved for it. Used in a `with` statement: what was not kept by its end is gone, and its room free.

    Attributes:
        fd: to write to, from the beginning.
    """

    def __init__(self, shards: Shards, room: Room, place: tuple[int, str], size: int) -> None:
        self._room, self._size = room, size
        self._shard, self._path = place
        self._is_kept = False
        self._file = LockedFile(shards, self._shard)
        self.fd = self._file.fd
        try:
            if size:
                os.posix_fallocate(self.fd, 0, size)
        except BaseException:
            self._file.__exit__()
            raise

    def __enter__(self) -> NewObject:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            self._room.give_back(self._size)
        self._file.__exit__()

    def grow(self, size: int) -> None:
        """Take more room, as the object is larger than was thought.

        Raises:
            NoRoom: it doesn't fit.
            OSError: it never will.
        """
        if self._size + size > self._room.max_bytes:
            limit = f"the {self._room.max_bytes >> 20:,} MiB that --stage-bytes allows on this node"
            raise OSError(errno.E2BIG, f"its record goes on for more than {limit}")
        self._room.reserve(size)
        self._size += size

    def keep(self, used_at: str) -> None:
        """All of it is there: put it into the cache, and link it to where it is to be used.

        Raises:
            OSError: it can't be linked there.
        """
        self._file.rename(self._path, linked_at=used_at)
        self._is_kept = True
        self._room.added(self._shard, self._size)
