"""Objects on the node's disk: kept by URL and version, those used long ago removed first, never one in use.

Whoever uses an object has a hard link to it, and so has it for as long as it is needed, whatever happens here: a link
count above 1 means "in use". That also holds for two agents that share the folder, and for an agent that has died,
whose links go with its working folder. Room is reserved on the disk before the first byte is fetched.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from parallelrun_agent.staging.new_object import NewObject
from parallelrun_agent.staging.parts import FilePart
from parallelrun_agent.staging.room import Room
from parallelrun_agent.staging.shards import Shards
from parallelrun_core.storage.interface import Version


class StageCache:
    """For any number of threads and processes. Only `admit` and `leave` are for threads that must not wait for a disk.

    Args:
        folder: created if missing, private; on the file system of those who use the objects.
        max_bytes: what it may hold, with what is in use and on its way; 0: half of what is free and what it holds.

    Raises:
        OSError: the folder can't be created or read.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder / "objects"
        self._shards = Shards(self.folder)
        self._room = Room(folder, self._shards, max_bytes)
        self.max_bytes = self._room.max_bytes
        self._admitted = 0
        self._admitting = threading.Lock()

    def admit(self, size: int) -> bool:
        """Return whether so much more may be in use at the same time on behalf of this agent; if so, `leave` must
        follow.

        Without this, two mini-batches that are each half there could wait for each other's room.
        """
        with self._admitting:
            if self._admitted + size > self.max_bytes:
                return False
            self._admitted += size
            return True

    def leave(self, size: int) -> None:
        """So much is not in use any more."""
        with self._admitting:
            self._admitted -= size

    def take(self, url: str, version: Version, target: str, part: FilePart | None = None) -> bool:
        """Link an object, or a part of one, to where it is to be used, if it is here; whether it was.

        Raises:
            OSError: it can't be linked there.
        """
        self._room.note_if_due()
        _, entry = self._place(url, version, part)
        try:
            os.link(entry, target)
        except FileNotFoundError:
            return False
        if self._room.doubt.until and self._room.doubt.covers(os.stat(target).st_mtime):
            for path in (target, entry):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            return False
        return True

    def begin(self, url: str, version: Version, part: FilePart | None = None) -> NewObject:
        """A file for an object, or a part of one, that is to be fetched.

        Raises:
            NoRoom: it would have to wait until something is not in use any more.
            OSError: the disk is full, or fails.
        """
        size = version.size_bytes if part is None else part.end - part.start
        self.reserve(size)
        try:
            return NewObject(self._shards, self._room, self._place(url, version, part), size)
        except BaseException:
            self.give_back(size)
            raise

    def put(self, url: str, version: Version, content: memoryview, target: str) -> None:
        """Add a small object, for which there is room (`reserve`), and link it to where it is to be used.

        Raises:
            OSError: the disk is full, or fails, or it can't be linked there. There is no more room for it then.
        """
        try:
            # As few system calls as it takes: of small objects, they are most of what an object costs. Its first name
            # is where it is used, so it is in use before it is in the cache, and goes with the tree of a dead agent.
            fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
            try:
                self._fill(fd, content)
                shard, path = self._place(url, version, None)
                os.link(target, path)
            except FileExistsError:  # another thread or agent has just put it there: both are whole
                self.give_back(version.size_bytes)
                return
            except BaseException:
                os.unlink(target)
                raise
            finally:
                os.close(fd)
        except BaseException:
            self.give_back(version.size_bytes)
            raise
        self._room.added(shard, version.size_bytes)

    @staticmethod
    def _fill(fd: int, content: memoryview) -> None:
        while content:
            content = content[os.write(fd, content) :]

    def reserve(self, size: int) -> None:
        """Have room for so much more.

        Raises:
            NoRoom: see `begin`.
        """
        self._room.reserve(size)

    def give_back(self, size: int) -> None:
        """This much that was to be fetched isn't there."""
        self._room.give_back(size)

    def free(self, size: int) -> None:
        """Remove so much of what is not in use, because the disk is full.

        Raises:
            NoRoom: there is nothing to remove.
        """
        self._room.free(size)

    def _place(self, url: str, version: Version, part: FilePart | None) -> tuple[int, str]:
        of = "" if part is None or part == (0, version.size_bytes, None) else f"\0{part}"
        name = f"{url}\0{version.tag or version.modified}\0{version.size_bytes}{of}".encode(errors="surrogateescape")
        return self._shards.place(name)
