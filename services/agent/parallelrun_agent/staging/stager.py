"""Stages the mini-batches of one job on one node: threads fetch their objects, and link them to local paths.

All of a job's objects are in one tree, each with its path below the input, so that scripts find what they would find
had the input been mounted. An object that several mini-batches need is linked once, for as long as one needs it.
"""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from parallelrun_agent.policy.fetchers import Fetchers
from parallelrun_agent.staging import failures
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.fetching import SMALL_BYTES, bring, take
from parallelrun_agent.staging.room import StagingFull
from parallelrun_agent.staging.staged import Staged, StagedObject
from parallelrun_core.service.threads import started_thread
from parallelrun_core.storage.objects.meters import asked_again
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.wire.outcome import Failure

_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 8.0
"""Between two times that a store is asked for the same object; each of them is more than one request."""


@dataclass
class _MiniBatch:
    files: list[StagedObject]
    began_at: float
    files_left: int
    size: int
    is_admitted: bool = False
    fetched_bytes: int = 0
    failure: Failure | None = None
    disk_error: str = ""
    missing: dict[str, Failure] = field(default_factory=dict)
    """By their targets, why files are not here."""


@dataclass
class _Link:
    """A place in the tree, and who needs it."""

    tokens: set[str] = field(default_factory=set)
    is_there: bool = False
    tries: int = 0
    trouble: str = ""
    """Why its object isn't here yet."""


class Stager:
    """Used by one thread; its own threads write to `wake` when something is added to `done`.

    Args:
        tree: folder below which all targets are; created when needed, removed by `close`.
        wake: a pipe's end that doesn't block.
        beside: how much of the cache this job needs for something else, for as long as it is here.
        timeout_s: how long the files of a mini-batch may take, once there is room for them; as long is a store asked
            again that doesn't answer, or has too much to do; and as long does a mini-batch wait for the room that other
            jobs use.
    """

    def __init__(
        self,
        cache: StageCache,
        tree: Path,
        *,
        wake: int,
        timeout_s: float = math.inf,
        beside: Callable[[], int] = int,
    ) -> None:
        self.done: deque[Staged] = deque()
        self._cache = cache
        self._tree = tree
        self._wake = wake
        self._timeout_s = timeout_s
        self._beside = beside
        self._is_closed = False
        self._to_do: SimpleQueue[list[StagedObject] | StagedObject | None] = SimpleQueue()
        """For threads: files that may be here already, in one go, as most of that is the way to a thread; or one that
        is to be fetched. None: it is over."""
        self._lock = threading.Lock()
        self._mini_batches: dict[str, _MiniBatch] = {}
        self._links: dict[str, _Link] = {}
        self._waiting: deque[str] = deque()
        """Tokens of mini-batches that are not admitted yet, in their order."""
        self._without_room: deque[StagedObject] = deque()
        self._later: list[tuple[float, StagedObject]] = []
        """What a store could not give, and when it is asked again."""
        self._left_at = 0.0
        """When something of this job made room for the last time."""
        self._folders: set[str] = set()
        """Those in the tree that are there."""
        self._fetchers = Fetchers()
        self._threads = 0

    def stage(self, token: str, files: list[StagedObject]) -> None:
        """Begin to bring these objects here; `done` gets how it ended. `release` follows when they aren't needed."""
        size = sum(file.size_bytes for file in files)
        mini_batch = _MiniBatch(files, time.monotonic(), len(files), size)
        with self._lock:
            self._mini_batches[token] = mini_batch
            if size > self._cache.max_bytes - (beside := self._beside()):
                mini_batch.failure = failures.too_large(size, self._cache.max_bytes, beside)
                self._end(token, mini_batch)
                return
            self._waiting.append(token)
            fetched = self._admitted()
        self._begin(fetched)

    def fail(self, token: str, failure: Failure) -> None:
        """Fail all staging: it is known already that nothing can be staged."""
        with self._lock:
            self._mini_batches[token] = mini_batch = _MiniBatch([], time.monotonic(), 0, 0, failure=failure)
            self._end(token, mini_batch)

    def retry(self) -> None:
        """Begin what had to wait for room, and end what takes too long. For calls a few times a second."""
        with self._lock:
            now = time.monotonic()
            self._end_overdue(now)
            self._end_starved(now)
            fetched, self._without_room = list(self._without_room), deque()
            if self._later:
                fetched += [file for at, file in self._later if at <= now]
                self._later = [each for each in self._later if each[0] > now]
            fetched += self._admitted()
        self._begin(fetched)
        if not self._threads and not self._to_do.empty():
            self._start_threads()

    def _admitted(self) -> list[StagedObject]:
        """Admit those for which there is room, in their order; returns what is to be fetched for them."""
        fetched: list[StagedObject] = []
        while self._waiting:
            mini_batch = self._mini_batches.get(self._waiting[0])
            if mini_batch is not None:
                if not self._cache.admit(mini_batch.size):
                    break
                mini_batch.is_admitted = True
                mini_batch.began_at = time.monotonic()
                fetched += self._linked(self._waiting[0], mini_batch)
            self._waiting.popleft()
        return fetched

    def _begin(self, fetched: list[StagedObject]) -> None:
        if fetched:
            self._to_do.put(fetched)
            self._start_threads()

    def _start_threads(self) -> None:
        """Until there are as many as are wanted now. The end of the process doesn't wait: a store may not answer."""
        with self._lock:
            missing = max(0, self._fetchers.wanted - self._threads)
            self._threads += missing
        for started in range(missing):
            try:
                started_thread("stage", self._work)
            except OSError:  # fewer will do; if there are none, `retry` finds out when there may be one
                with self._lock:
                    self._threads -= missing - started
                return

    def _end_overdue(self, now: float) -> None:
        for token, mini_batch in self._mini_batches.items():
            if mini_batch.is_admitted and mini_batch.files_left > 0 and now - mini_batch.began_at > self._timeout_s:
                mini_batch.failure = mini_batch.failure or self._overdue(mini_batch)
                mini_batch.missing.clear()  # of others, nobody knows
                mini_batch.files_left = 0
                self._end(token, mini_batch)

    def _end_starved(self, now: float) -> None:
        """End what waits for the room of other jobs for too long: this one has nothing here that will make room."""
        first = self._mini_batches.get(self._waiting[0]) if self._waiting else None
        if first is None or now - max(first.began_at, self._left_at) <= self._timeout_s:
            return
        if any(mini_batch.is_admitted for mini_batch in self._mini_batches.values()):
            return
        first.failure = failures.starved(first.size, self._cache.max_bytes, self._timeout_s)
        self._end(self._waiting.popleft(), first)

    def _overdue(self, mini_batch: _MiniBatch) -> Failure:
        links = ((file, self._links.get(file.target)) for file in mini_batch.files)
        pending = ((file.url, link.trouble) for file, link in links if link is not None and not link.is_there)
        return failures.overdue(pending, mini_batch.files_left, len(mini_batch.files), self._timeout_s)

    def _linked(self, token: str, mini_batch: _MiniBatch) -> list[StagedObject]:
        """Note who needs which place; returns what nobody fetches yet."""
        fetched = []
        for file in mini_batch.files:
            link = self._links.get(file.target)
            if link is None:
                link = self._links[file.target] = _Link()
                fetched.append(file)
            elif link.is_there or token in link.tokens:
                mini_batch.files_left -= 1
            link.tokens.add(token)
        if not mini_batch.files_left:
            self._end(token, mini_batch)
        return fetched

    def release(self, token: str) -> None:
        """A mini-batch is over, or not wanted any more: what only it needed is removed from the tree."""
        with self._lock:
            mini_batch = self._mini_batches.pop(token, None)
            if mini_batch is None or not mini_batch.is_admitted:
                return
            unused = self._unlinked(token, mini_batch)
            self._left_at = time.monotonic()
            is_awaited = bool(self._waiting or self._without_room)
        for target in unused:  # only this thread begins to need a place, so nobody needs one of these by now
            _remove(target)
        self._cache.leave(mini_batch.size)
        if is_awaited:
            self.retry()

    def _unlinked(self, token: str, mini_batch: _MiniBatch) -> list[str]:
        """Note who doesn't need its places any more; returns those that nobody needs."""
        unused = []
        for file in mini_batch.files:
            link = self._links.get(file.target)
            if link is None:
                continue
            link.tokens.discard(token)
            if not link.tokens and link.is_there:
                del self._links[file.target]
                unused.append(file.target)
        return unused

    def close(self) -> None:
        """Begin nothing more; what is being fetched ends in its own time, and is in the cache then."""
        with self._lock:
            self._waiting.clear()
            self._without_room.clear()
            self._later.clear()
        for token in list(self._mini_batches):
            self.release(token)
        self._is_closed = True
        self._to_do.put(None)
        shutil.rmtree(self._tree, ignore_errors=True)

    def _work(self) -> None:
        while (todo := self._to_do.get()) is not None:
            if self._is_closed:
                continue
            if isinstance(todo, list):
                self._look_for(todo)
            else:
                self._fetch(todo)
        self._to_do.put(None)  # for the next thread

    def _look_for(self, files: list[StagedObject]) -> None:
        """Link those that are in the cache; leave the others to whoever fetches next."""
        with self._lock:
            awaited = [file for file in files if self._is_wanted(file)]
        here = []
        for file in awaited:
            if self._is_here(file):
                here.append(file)
            else:
                self._to_do.put(file)
        with self._lock:
            for file in here:
                self._ended(file)

    def _is_here(self, file: StagedObject) -> bool:
        try:
            self._make_folder(file.target)
            return take(file.url, file.version, file.target, self._cache, file.part)
        except OSError:  # who fetches it meets that again, and says so
            return False

    def _is_wanted(self, file: StagedObject) -> bool:
        if self._links[file.target].tokens:
            return True
        del self._links[file.target]
        return False

    def _fetch(self, file: StagedObject) -> None:
        with self._lock:
            if not self._is_wanted(file):
                return
        fetched, failure, disk_error = 0, None, ""
        began_at = time.monotonic()
        try:
            fetched = self._bring(file)
        except StagingFull:
            with self._lock:
                self._without_room.append(file)
            return
        except StoreAway as error:
            self._try_later(file, error)
            return
        except Exception as error:
            disk_error = failures.disk_error_of(error, file.url)
            failure = None if disk_error else failures.failure_of(error, file.url)
        with self._lock:
            if 0 < fetched <= SMALL_BYTES:
                self._fetchers.answered(time.monotonic() - began_at)
            self._ended(file, fetched, failure, disk_error)
            is_short = self._threads < self._fetchers.wanted
        if is_short and not self._to_do.empty():
            self._start_threads()

    def _bring(self, file: StagedObject) -> int:
        self._make_folder(file.target)
        try:
            return bring(file.url, file.version, file.target, self._cache, file.part)
        except FileExistsError:
            self._remove_folders(file.target)
        return bring(file.url, file.version, file.target, self._cache, file.part)

    def _make_folder(self, target: str) -> None:
        folder = target[: target.rindex("/")]
        if folder not in self._folders:
            os.makedirs(folder, exist_ok=True)
            self._folders.add(folder)

    def _remove_folders(self, top: str) -> None:
        """An object `a` is wanted where those below `a/` were."""
        with self._lock:
            for folder, _, _ in os.walk(top, topdown=False):
                os.rmdir(folder)
                self._folders.discard(folder)

    def _try_later(self, file: StagedObject, error: StoreAway) -> None:
        """No thread waits for a store that is away: others may be there."""
        asked_again(file.url, "get")
        with self._lock:
            link = self._links[file.target]
            link.tries += 1
            link.trouble = f"{str(error.strerror).rstrip('.')}."
            pause_s = min(_PAUSE_S * 2 ** (link.tries - 1), _LONGEST_PAUSE_S)
            self._later.append((time.monotonic() + pause_s, file))

    def _ended(
        self, file: StagedObject, fetched: int = 0, failure: Failure | None = None, disk_error: str = ""
    ) -> None:
        """A file is here, or this is why not. Under the lock."""
        link = self._links[file.target]
        link.is_there = not failure and not disk_error
        tokens = list(link.tokens)
        if not link.is_there or not tokens:
            del self._links[file.target]
        for token in tokens:
            mini_batch = self._mini_batches.get(token)
            if mini_batch is None or mini_batch.files_left <= 0:
                continue
            mini_batch.files_left -= 1
            mini_batch.fetched_bytes += fetched
            if failure is not None:
                mini_batch.failure = mini_batch.failure or failure
                mini_batch.missing[file.target] = failure
            mini_batch.disk_error = mini_batch.disk_error or disk_error
            if not mini_batch.files_left:
                self._end(token, mini_batch)
        if not tokens:
            _remove(file.target)

    def _end(self, token: str, of: _MiniBatch) -> None:
        elapsed_s = time.monotonic() - of.began_at
        missing = {at: of.missing[file.target] for at, file in enumerate(of.files) if file.target in of.missing}
        self.done.append(Staged(token, elapsed_s, of.fetched_bytes, of.failure, of.disk_error, len(of.files), missing))
        with suppress(BlockingIOError):  # whoever reads it is woken already
            os.write(self._wake, b"\1")


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
