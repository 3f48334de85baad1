"""Inputs that are not cut into mini-batches, such as a model: here before a job's first worker starts."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal, NamedTuple

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.fetching import fetch
from parallelrun_agent.staging.room import StagingFull
from parallelrun_agent.staging.tree import JobTree
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.objects.environment import NoCredentials
from parallelrun_core.storage.objects.trouble import Missing, StoreAway, StoreError
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.outcome import Failure

log = logger()

_THREADS: Final = 8
_AGAIN_S: Final = 1.0
_SAY_EVERY_S: Final = 20.0


class _NeverFits(StagingFull):
    """Raised when an input would not even fit if nothing else was there."""


class SideInputs:
    """Brings them here in threads of its own, since the agent's has leases to renew.

    A node that lacks something which may come back goes on trying: a store that answers, room, a disk.

    Args:
        urls: of the inputs, by name; with none there is nothing to wait for.
        timeout_s: for how long nothing more may come before that is a failure.
        changed: called in another thread when it is known whether they are here.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        tree: JobTree,
        cache: StageCache,
        *,
        timeout_s: float,
        changed: Callable[[], None],
    ) -> None:
        self.is_ready = False
        """All of them are here."""
        self.paths: dict[str, str] = {}
        """What scripts find as the path of each, once they are here."""
        self.admitted_bytes = 0
        """How much of the cache they use, or will."""
        self._failure: Failure | None = None
        self._urls = urls
        self._tree = tree
        self._cache = cache
        self._timeout_s = timeout_s
        self._changed = changed
        self._inputs: dict[str, SideObjects] = {}
        self._is_coming = True
        self._came_at = time.monotonic()
        self._say_at = self._report_at = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = started_thread("side-inputs", self._bring)

    def take_failure(self) -> Failure | None:
        """Why no worker may start; once, and again from time to time while that may still change.

        `INPUT_UNREADABLE` is for good, on any node; `LOAD_TIMEOUT` is this node's, for now.
        """
        failure, self._failure = self._failure, None
        return failure

    def is_due(self, now: float) -> bool:
        """Return whether it is time to report that they are still on their way, so that the job
        isn't taken for stuck.
        """
        return self._is_coming and not self.is_ready and now >= self._report_at

    def reported(self, now: float) -> None:
        """Record that the failure was reported."""
        self._report_at = now + _SAY_EVERY_S

    def close(self) -> None:
        """They are not needed any more: what is being fetched ends in its own time."""
        self._closed.set()
        self._leave()

    def _bring(self) -> None:
        try:
            while not self._closed.is_set() and not self._is_brought():
                self._closed.wait(_AGAIN_S)
        except Exception as error:  # nobody else would tell of it
            self._is_coming = False
            self._leave()
            self._fail("INPUT_UNREADABLE", error)
        if self._closed.is_set():
            shutil.rmtree(self._tree.side_inputs, ignore_errors=True)

    def _is_brought(self) -> bool:
        """Try it once. Raises what another try would not change."""
        try:
            self._bring_all()
        except (NoCredentials, StoreError) as error:
            if not isinstance(error, StoreAway):
                raise
            self._stopped(error)
        except (OSError, StagingFull) as error:
            self._stopped(error)
        return self.is_ready

    def _bring_all(self) -> None:
        for name, url in self._urls.items():
            if name not in self._inputs:
                self._inputs[name] = SideObjects(url, self._tree.side_folder(name))
        if not self._has_room(sum(each.size_bytes for each in self._inputs.values())):
            return
        for name, objects in self._inputs.items():
            try:
                with ThreadPoolExecutor(_THREADS, "side-input") as pool:
                    list(pool.map(lambda each, of=objects: self._fetch(of, each), list(objects.missing.values())))
            except Replaced:  # then all of it is listed again: a new file may not fit to the old ones
                shutil.rmtree(self._tree.side_folder(name))
                del self._inputs[name]
                raise
        if not self._closed.is_set():
            self.paths = {name: str(objects.path) for name, objects in self._inputs.items()}
            self.is_ready = True
            self._changed()

    def _has_room(self, size: int) -> bool:
        """Use so much of the cache, in all; False if it is too late for that."""
        with self._lock:
            if self._closed.is_set():
                return False
            if not self._cache.admit(size - self.admitted_bytes):
                limit = f"the {self._cache.max_bytes >> 20:,} MiB that --stage-bytes allows on this node"
                words = f"they have {size >> 20:,} MiB, which don't fit into {limit}"
                raise (
                    _NeverFits(words)
                    if size > self._cache.max_bytes
                    else StagingFull(f"{words} beside other jobs' files")
                )
            self.admitted_bytes = size
            return True

    def _leave(self) -> None:
        with self._lock:
            self._cache.leave(self.admitted_bytes)
            self.admitted_bytes = 0

    def _fetch(self, of: SideObjects, each: SideObject) -> None:
        if self._closed.is_set():
            return
        each.place.parent.mkdir(parents=True, exist_ok=True)
        each.place.unlink(missing_ok=True)
        fetch(each.url, each.version, str(each.place), self._cache)
        del of.missing[each.url]
        self._is_coming, self._came_at = True, time.monotonic()

    def _stopped(self, error: Exception) -> None:
        """Record that staging has stopped, and may go on later. Say so if that takes long."""
        log.warning("side_input_unreadable", error=str(error))
        now = time.monotonic()
        if now - self._came_at > self._timeout_s or isinstance(error, _NeverFits):
            self._is_coming = False
            if now >= self._say_at:
                self._say_at = now + _SAY_EVERY_S
                self._fail("LOAD_TIMEOUT", error)

    def _fail(self, category: Literal["INPUT_UNREADABLE", "LOAD_TIMEOUT"], error: Exception) -> None:
        where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self._failure = Failure(category, f"Inputs of the job can't be brought to this node: {where}{words}")
        self._changed()


class SideObject(NamedTuple):
    url: str
    version: Version
    place: Path


class SideObjects:
    """The objects of one side input, listed once.

    Args:
        folder: where they are to be.

    Raises:
        Missing: there is none.
        ValueError: they can't all be files of one folder.
        OSError: the store refuses, or doesn't answer.

    Attributes:
        missing: those that are not there yet, by URL; the fetcher's to keep.
        path: of the folder, or of the file if the input is one.
    """

    def __init__(self, url: str, folder: Path) -> None:
        storage, versions = storage_of(url), _listed(url)
        top, pattern = storage.split(url)
        places = {each: folder / (storage.below(each, top) or storage.unique_relative_path(each)) for each in versions}
        _check(places, folder)
        self.missing = {each: SideObject(each, version, places[each]) for each, version in versions.items()}
        self.size_bytes = sum(version.size_bytes for version in versions.values())
        first = next(iter(versions))
        is_one_file = not pattern and storage.below(top, first) is not None
        self.path = places[first] if is_one_file else folder


def _listed(url: str) -> dict[str, Version]:
    listing = storage_of(url).files(url)
    objects: dict[str, Version] = {}
    for folder, names in listing:
        urls = (f"{os.fsdecode(folder)}/{os.fsdecode(name)}" for name in names)
        objects.update(zip(urls, listing.versions or (), strict=True))
    if not objects:
        raise Missing(errno.ENOENT, "there is nothing at this URL", url)
    return objects


def _check(places: dict[str, Path], folder: Path) -> None:
    files = {str(place): url for url, place in places.items()}
    for place, url in files.items():
        above = os.path.dirname(place)
        while len(above) > len(str(folder)):
            if above in files:
                raise ValueError(f"{files[above]} can't be a file where {url} is: rename one of these objects")
            above = os.path.dirname(above)
