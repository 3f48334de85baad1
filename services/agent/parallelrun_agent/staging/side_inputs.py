"""Inputs that are not cut into mini-batches, such as a model: here before a job's first worker starts."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.fetching import fetch
from parallelrun_agent.staging.room import NoRoom
from parallelrun_agent.staging.tree import JobTree
from parallelrun_core.outcome import Failure
from parallelrun_core.service.telemetry import logger
from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.stores import storage_of

log = logger()

_THREADS: Final = 8
_AGAIN_S: Final = 1.0


class SideInputs:
    """Brings them here in threads of its own, since the agent's has leases to renew.

    Args:
        urls: of the inputs, by name; with none there is nothing to wait for.
        timeout_s: how long all of it may fail to be read before no worker can start.
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
        self._failure: Failure | None = None
        self._urls = urls
        self._tree = tree
        self._cache = cache
        self._timeout_s = timeout_s
        self._changed = changed
        self._admitted = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._bring, name="side-inputs", daemon=True)
        self._thread.start()

    def take_failure(self) -> Failure | None:
        """Why no worker may start; only once."""
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        """They are not needed any more: what is being fetched ends in its own time."""
        self._closed.set()
        if self._admitted:
            self._cache.leave(self._admitted)

    def _bring(self) -> None:
        deadline = time.monotonic() + self._timeout_s
        while not self._closed.is_set():
            try:
                for name, url in self._urls.items():
                    self.paths[name] = str(self._bring_one(name, url))
            except Replaced as error:
                log.info("side_input_replaced", reason=str(error))  # list it again
            except (OSError, NoRoom) as error:
                if time.monotonic() > deadline or isinstance(error, FileNotFoundError):
                    where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
                    self._fail(f"{where}{getattr(error, 'strerror', None) or error}")
                    return
                log.warning("side_input_unreadable", error=str(error))
            except ValueError as error:
                self._fail(str(error))
                return
            else:
                self.is_ready = True
                self._changed()
                return
            self._closed.wait(_AGAIN_S)

    def _fail(self, message: str) -> None:
        self._failure = Failure("INPUT_UNREADABLE", f"An input of the job can't be brought to this node: {message}")
        self._changed()

    def _bring_one(self, name: str, url: str) -> Path:
        """Returns the path of a folder, or of the file if the input is one."""
        storage, folder = storage_of(url), self._tree.side_folder(name)
        top, pattern = storage.split(url)
        objects = _listed(url)
        places = {each: folder / (storage.below(each, top) or storage.from_everywhere(each)) for each in objects}
        missing = [each for each in objects if not places[each].exists()]
        size = sum(objects[each].size_bytes for each in missing)
        if not self._cache.admit(size):
            raise NoRoom(f"{url} has {size >> 20:,} MiB: too many for --stage-bytes of this node")
        self._admitted += size
        with ThreadPoolExecutor(_THREADS, "side-input") as pool:
            list(pool.map(lambda each: self._fetch(each, objects[each], places[each]), missing))
        first = next(iter(objects))
        is_one_file = not pattern and storage.below(top, first) is not None
        return places[first] if is_one_file else folder

    def _fetch(self, url: str, version: Version, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            fetch(url, version, str(place), self._cache)


def _listed(url: str) -> dict[str, Version]:
    listing = storage_of(url).files(url)
    objects: dict[str, Version] = {}
    for folder, names in listing:
        urls = (f"{os.fsdecode(folder)}/{os.fsdecode(name)}" for name in names)
        objects.update(zip(urls, listing.versions or (), strict=True))
    if not objects:
        raise FileNotFoundError(errno.ENOENT, "there is nothing at this URL", url)
    return objects
