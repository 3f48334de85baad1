"""The folders that the cache's files are spread over, so that one look at what is there is at a small part of it.

objects/ab/<62 hex digits>   one version of one object, or a part of it, read-only
objects/ab/.new-<random>     one that is being fetched, locked by whoever fetches it
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_agent.staging.crash_recovery import Doubt

SHARDS: Final = 256
_NEW: Final = ".new-"


class ShardEntry(NamedTuple):
    used_at: float
    """Time when it was linked to where it is used, or unlinked from there, for the last time: the inode's own time of
    change says so, and costs no call."""
    size: int
    path: str
    is_in_use: bool


class Shards:
    """Created where they are missing.

    Raises:
        OSError: they can't be.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._shards = [f"{folder}/{shard:02x}" for shard in range(SHARDS)]
        if not os.path.isdir(self._shards[-1]):
            for shard in self._shards:
                with suppress(FileExistsError):
                    os.mkdir(shard, 0o700)
        self._own = f"{_NEW}{secrets.token_hex(12)}-"
        self._numbers = itertools.count()

    def place(self, name: bytes) -> tuple[int, str]:
        """Return where the file with this name is: its shard, and its path."""
        digest = hashlib.sha256(name).hexdigest()
        return int(digest[:2], 16), f"{self.folder}/{digest[:2]}/{digest[2:]}"

    def new(self, shard: int) -> str:
        """A path for a file that is to be one of this shard."""
        return f"{self._shards[shard]}/{self._own}{next(self._numbers)}"

    def look(self, shard: int, doubt: Doubt) -> list[ShardEntry]:
        """Return what is in a shard, without what this process is fetching.

        What a dead agent was fetching, and what is in doubt, is removed.
        """
        looked_at = []
        with os.scandir(self._shards[shard]) as entries:
            for entry in entries:
                is_new = entry.name.startswith(_NEW)
                if is_new and (entry.name.startswith(self._own) or _remove_if_abandoned(entry.path)):
                    continue
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if not is_new and doubt.covers(status.st_mtime):
                        os.unlink(entry.path)
                        continue
                    looked_at.append(
                        ShardEntry(status.st_ctime, status.st_size, entry.path, is_new or status.st_nlink > 1)
                    )
        return looked_at

    def remove_others(self) -> None:
        """Remove files that are in no shard: no agent of this release has put them there."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        os.unlink(entry.path)


def _remove_if_abandoned(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            os.unlink(path)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
