"""Room of the cache: how much of the disk it takes, and what goes when something else needs it.

Nobody ever looks at all that is there at once, which may be millions of files. What each shard holds is known from the
last look at it, and from what was added since; what all of them held is noted on the disk for the next agent. For each
part of the limit that is fetched, the next shard is looked at, which also shows what other agents do. To make room,
shards are looked at one after another until some hundred files are seen, and the oldest quarter of them goes. So the
least recently used go first in each of these samples, which is the whole cache if that is small.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_agent.staging.crash_recovery import NO_DOUBT, Doubt, doubt_of, end_doubt
from parallelrun_agent.staging.shards import SHARDS, ShardEntry, Shards
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread

log = logger()

_NAME: Final = ".held"
_NOTED_EVERY_S: Final = 10.0
_BLINDLY: Final = 0.25
"""While this part of the limit is fetched, each shard is looked at once."""
_SAMPLE: Final = 1000
_SORTED: Final = 4000
"""No more of them are put in order: the agent's one thread would wait for that."""
_OLDEST: Final = 0.25
"""The part of a sample that goes, so that not every new object needs a look."""
_LONGEST_PAUSE_S: Final = 5.0


class StagingFull(Exception):
    """Too much of the cache is in use for one more object."""


class Room:
    """For any number of threads. Methods may look at the disk, so none is for the agent's one thread.

    Args:
        folder: the node's cache folder, which is there.
        max_bytes: what the shards may hold; 0: half of what is free and what they hold by now.

    Raises:
        OSError: the folder can't be read or written to.
    """

    def __init__(self, folder: Path, shards: Shards, max_bytes: int) -> None:
        self._noted = folder / _NAME
        self._folder = folder
        self._shards = shards
        held_bytes, last_alive_at = _read(self._noted)
        self.doubt: Doubt = doubt_of(folder, last_alive_at)
        """What of the shards is not to be believed."""
        self.max_bytes = max_bytes or (shutil.disk_usage(folder).free + held_bytes) // 2
        self._step = max(1, int(self.max_bytes * _BLINDLY / SHARDS))
        self._lock = threading.Lock()
        """Of all numbers; held while none of them waits for a disk."""
        self._held = [held_bytes // SHARDS] * SHARDS
        self._used = sum(self._held)
        """With what is reserved."""
        self._unseen = 0
        self._meanwhile = 0
        """Added to the shard that is being looked at."""
        self._looking = threading.Lock()
        self._shard = -1
        """The last one that was looked at."""
        self._full_until = 0.0
        self._note_at = 0.0
        started_thread("stage-room", self._look_at_all)

    def reserve(self, size: int) -> None:
        """Have room for so much more.

        Raises:
            NoRoom: too much is in use; better not asked again at once.
        """
        with self._lock:
            looks, self._unseen = divmod(self._unseen + size, self._step)
            if not looks and not self._full_until and self._used + size <= self.max_bytes:
                self._used += size
                return
        for _ in range(min(looks, SHARDS)):
            self._look()
        if time.monotonic() < self._full_until:
            raise self._no_room()
        self._full_until = 0.0
        if not self._fits(size):
            with self._looking:
                if not self._fits(size):
                    if time.monotonic() < self._full_until:  # another thread has just found that out
                        raise self._no_room()
                    self._evict(size)

    def give_back(self, size: int) -> None:
        """This much that was reserved isn't there."""
        with self._lock:
            self._used -= size

    def added(self, shard: int, size: int) -> None:
        """This much that was reserved is there."""
        with self._lock:
            self._held[shard] += size
            if shard == self._shard:
                self._meanwhile += size

    def free(self, size: int) -> None:
        """Remove as much from the disk, which is full before the limit is reached.

        Raises:
            NoRoom: there is nothing to remove.
        """
        with self._looking:
            shards_left, before = SHARDS, self._used
            while shards_left > 0 and before - self._used < size:
                shards_left -= self._shrink()
            if self._used >= before:
                self._full_until = time.monotonic() + _LONGEST_PAUSE_S
                raise self._no_room()

    def note_if_due(self) -> None:
        """Note on the disk, every few seconds, that an agent lives, and how much there is."""
        now = time.monotonic()
        if now > self._note_at:
            self._note_at = now + _NOTED_EVERY_S
            self.note()

    def note(self) -> None:
        with suppress(OSError):  # a full disk: what is noted only gets older
            fd = os.open(self._noted, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, b"%020d" % sum(self._held), 0)
            finally:
                os.close(fd)

    def _fits(self, size: int) -> bool:
        with self._lock:
            if self._used + size > self.max_bytes:
                return False
            self._used += size
            return True

    def _evict(self, size: int) -> None:
        began_at = time.monotonic()
        is_shrinking = True
        while is_shrinking:
            shards_left, before = SHARDS, self._used
            while shards_left > 0:
                shards_left -= self._shrink()
                if self._fits(size):
                    return
            is_shrinking = self._used < before
        now = time.monotonic()
        self._full_until = now + min(now - began_at, _LONGEST_PAUSE_S)
        raise self._no_room()

    def _shrink(self) -> int:
        """Remove the oldest of what isn't in use in the next shards, and return how many shards these were."""
        unused: list[tuple[ShardEntry, int]] = []
        looks = 0
        while looks < SHARDS and len(unused) < _SAMPLE:
            unused += [(entry, self._shard) for entry in self._look_at_next() if not entry.is_in_use]
            looks += 1
        goal = sum(entry.size for entry, _ in unused) * _OLDEST
        for entry, shard in _oldest(unused):
            if goal <= 0:
                break
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
            goal -= entry.size
            with self._lock:
                self._held[shard] -= entry.size
                self._used -= entry.size
        return looks

    def _look(self) -> None:
        with self._looking:
            self._look_at_next()

    def _look_at_next(self) -> list[ShardEntry]:
        with self._lock:
            self._shard = shard = (self._shard + 1) % SHARDS
            self._meanwhile = 0
        entries = self._shards.look(shard, self.doubt)
        held_bytes = sum(entry.size for entry in entries)
        with self._lock:
            held_bytes += (
                self._meanwhile
            )  # which may have been seen: rather too much than too little, until the next look
            self._used += held_bytes - self._held[shard]
            self._held[shard] = held_bytes
        return entries

    def _look_at_all(self) -> None:
        try:
            for _ in range(SHARDS):
                began_at = time.monotonic()
                self._look()
                time.sleep(time.monotonic() - began_at)  # there is no hurry, and the node has work to do
            if self.doubt.until:
                end_doubt(self._folder, self.doubt)
                self.doubt = NO_DOUBT
            self.note()
            self._shards.remove_others()
        except OSError as error:  # also when the folder has been removed
            log.warning("cache_unreadable", folder=str(self._folder), error=str(error))

    def _no_room(self) -> StagingFull:
        return StagingFull(f"{self._used >> 20:,} MiB of at most {self.max_bytes >> 20:,} are in use")


def _oldest(entries: list[tuple[ShardEntry, int]]) -> list[tuple[ShardEntry, int]]:
    if len(entries) <= _SORTED:
        return sorted(entries)
    times = sorted(entry.used_at for entry, _ in entries[:: len(entries) // _SORTED])
    limit = times[int(len(times) * _OLDEST)]
    return [each for each in entries if each[0].used_at <= limit]


def _read(path: Path) -> tuple[int, float]:
    """Return how much there was, and when that was noted; nothing if a crash has left nothing of it."""
    try:
        noted, noted_at = path.read_bytes(), path.stat().st_mtime
    except FileNotFoundError:
        return 0, 0.0
    return int(noted) if noted.isdigit() else 0, noted_at
