"""The memory into which a worker writes its stacks: as much as it takes, and no more."""

from __future__ import annotations

import os
from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl
from pathlib import Path

from parallelrun_worker.frames import STACKS_BYTES, STACKS_COMPLETE, STACKS_WANTED

_NOT_WANTED = b"\0"


class StackMemory:
    """A file without a name. Agent and worker share its position, at which the worker writes.

    Raises:
        OSError: there is no memory for it.
    """

    def __init__(self) -> None:
        self.fd = os.memfd_create("parallelrun-stacks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, STACKS_BYTES + 1)
            fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
        except OSError:
            self.close()
            raise
        self.number = self.fd
        """The worker's number for it."""

    def copy(self) -> StackMemory:
        """Return the memory by another descriptor, for another thread."""
        other = object.__new__(StackMemory)
        other.fd, other.number = os.dup(self.fd), self.number
        return other

    def close(self) -> None:
        os.close(self.fd)

    def is_open_in(self, pid: int) -> bool:
        """Return whether it is still what the worker would write to: its script may have closed it, and opened another
        file.

        Raises:
            OSError: there is no such process, or nothing of that number in it.
        """
        return os.path.samestat(Path(f"/proc/{pid}/fd/{self.number}").stat(), os.fstat(self.fd))

    def begin(self, *, all_threads: bool) -> None:
        """Let the worker write from the beginning; all threads only if they are wanted."""
        os.pwrite(self.fd, bytes(min(self.used, STACKS_BYTES)), 0)
        os.lseek(self.fd, 0, os.SEEK_SET)
        os.pwrite(self.fd, STACKS_WANTED if all_threads else _NOT_WANTED, STACKS_BYTES)

    def give_up(self) -> None:
        """Nobody waits for all threads any more."""
        os.pwrite(self.fd, _NOT_WANTED, STACKS_BYTES)

    @property
    def has_all_threads(self) -> bool:
        """Return whether the worker has written those that were wanted."""
        return os.pread(self.fd, 1, STACKS_BYTES) == STACKS_COMPLETE

    @property
    def used(self) -> int:
        """Return how much was written since the beginning."""
        return os.lseek(self.fd, 0, os.SEEK_CUR)

    def text(self) -> str:
        """Return what was written since then."""
        return os.pread(self.fd, min(self.used, STACKS_BYTES), 0).decode(errors="replace")
