"""The user whom a job's workers are, and what an agent does as this user.

Whatever lies where a job's code can write is touched only with that user's rights (`acting`): a link that the code has
put there leads nowhere where the code could not go itself. A thread of the agent takes on the user for files only, as
servers of network file systems do: nobody can signal or trace it meanwhile. What the agent makes for the workers
remains the agent's, and gets the group of the workers (`share`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_UNCHANGED: Final = 0xFFFFFFFF
_UMASK: Final = 0o022
"""The services must be able to read what scripts write."""
_AGENTS_OWN: Final = -1


@dataclass(frozen=True, slots=True)
class WorkerUser:
    """By default the agent's own user: everything below then does nothing else than usual."""

    uid: int = _AGENTS_OWN
    """The user's id, and that of its only group."""

    @property
    def is_other(self) -> bool:
        """Return whether it is another user than the agent's."""
        return self.uid != _AGENTS_OWN

    @property
    def start(self) -> dict[str, Any]:
        """Arguments for a `subprocess.Popen` that is called while acting as this user."""
        if not self.is_other:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": [], "umask": _UMASK}

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Within this context, this thread can do with files what this user can.

        Raises:
            PermissionError: the process may not become that user.
        """
        if not self.is_other:
            yield
            return
        with _file_id("setfsgid", self.uid), _file_id("setfsuid", self.uid):
            yield

    def share(self, path: Path, mode: int) -> None:
        """Give a file or folder of the agent's the group of this user, and this mode.

        Raises:
            OSError: it belongs to somebody else, or is a link.
        """
        if self.is_other:
            fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if stat.S_ISLNK(os.fstat(fd).st_mode):
                    raise OSError(errno.ELOOP, "it is a link", str(path))
                self.share_open(fd, mode)
            finally:
                os.close(fd)

    def share_open(self, fd: int, mode: int) -> None:
        """Share what is open, if only by its path."""
        name = f"/proc/self/fd/{fd}"
        with _file_id("setfsgid", self.uid):  # who is in a group may give it away
            os.chown(name, -1, self.uid)
        os.chmod(name, mode)

    def make(self, folder: Path, mode: int = 0o755) -> None:
        """Create a folder of this user's; one that is there is left alone.

        Raises:
            OSError: this user can't do that, or there is something else of that name.
        """
        with self.acting():
            folder.mkdir(mode=mode, exist_ok=True)

    def remove(self, folder: Path) -> None:
        """Remove a folder with all that this user and the agent have put into it, as far as possible."""
        with self.acting():
            shutil.rmtree(folder, ignore_errors=True)
            if self.is_other and folder.exists():
                for current, _, _ in os.walk(folder, onerror=_open_up):
                    _open_up(OSError(0, "", current))
                shutil.rmtree(folder, ignore_errors=True)
        if self.is_other:
            shutil.rmtree(folder, ignore_errors=True)

    def can(self, folder: Path, access: int) -> bool:
        """Return whether this user has this access (`os.R_OK`, …) to a path."""
        with self.acting():
            return os.access(folder, access, effective_ids=True)


SAME_USER: Final = WorkerUser()
"""The agent's own."""


def _open_up(error: OSError) -> None:
    """Let the owner into a folder that a script has closed even to itself."""
    try:
        os.chmod(error.filename, 0o700, follow_symlinks=True)
    except OSError:
        return


@contextmanager
def _file_id(call: str, number: int) -> Iterator[None]:
    """Set one of this thread's two ids for files, which the C library does for one thread only."""
    setter = getattr(ctypes.CDLL(None), call)
    before = setter(number) & _UNCHANGED
    if setter(_UNCHANGED) & _UNCHANGED != number:
        raise PermissionError(f"the agent can't act as user {number} here: {call} has no effect")
    try:
        yield
    finally:
        setter(before)
