"""Uploads folders to a store: several files at once, by threads that read them as the user who wrote them.

The next try of a mini-batch may write the same names. So an upload that is given up has ended only when none of its
requests is on its way any more, which the store's client sees to within a minute: what comes later stays.
"""

from __future__ import annotations

import io
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.storage.objects.meters import asked_again
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire.outcome import Failure

THREADS: Final = 8
"""Files that are uploaded at the same time, each of them in up to three parts."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0
_FOR_GOOD: Final = (FileNotFoundError, PermissionError, ValueError)
"""What a store says that will say the same a minute later: no such bucket, not allowed, no such name possible."""


class Uploaded(NamedTuple):
    key: str
    process: str
    is_rest: bool
    failure: Failure | None


@dataclass
class _Upload:
    """A folder on its way. Guarded by the uploader's lock."""

    key: str
    process: str
    is_rest: bool
    folder: Path
    began_at: float
    files_left: int = 1
    """Files that are not there yet; one more until all are known."""
    at_work: int = 0
    """Threads that may have a request on its way."""
    failure: Failure | None = None
    given_up: threading.Event = field(default_factory=threading.Event)


class _Source(io.FileIO):
    """A file that can be read until its upload is given up."""

    def __init__(self, fd: int, given_up: threading.Event) -> None:
        super().__init__(fd)
        self._given_up = given_up

    def read(self, size: int | None = -1, /) -> bytes:
        if self._given_up.is_set():
            raise OSError("its upload was given up")
        return super().read(-1 if size is None else size)


class Uploader:
    """For any number of folders at once.

    Args:
        urls: where the folders `0`, `1`, … in each of them go.
        user: who has written them.
        wake: a pipe that is written to when something was added to `done`.
        timeout_s: how long one folder may take.
        earlier: one that was closed before. Nothing is put while it has requests on their way.
    """

    def __init__(
        self,
        urls: Sequence[str],
        user: WorkerUser,
        *,
        wake: int,
        timeout_s: float,
        earlier: Uploader | None = None,
    ) -> None:
        self.done: deque[Uploaded] = deque()
        self._urls, self._user, self._wake, self._timeout_s = urls, user, wake, timeout_s
        self._pool = ThreadPoolExecutor(THREADS, "upload")
        self._lock = threading.Lock()
        self._uploads: dict[str, _Upload] = {}
        self._earlier = earlier

    def begin(self, key: str, process: str, folder: Path, *, is_rest: bool = False) -> None:
        """Upload all files of a folder, and remove it then; `done` gets how it ended."""
        upload = _Upload(key, process, is_rest, folder, time.monotonic())
        with self._lock:
            self._uploads[key] = upload
        with suppress(RuntimeError):  # the node allows no more threads: fewer will do, or it takes too long
            self._pool.submit(self._begin, upload)

    def poll(self, now: float) -> None:
        """Give up what takes too long. For calls a few times a second."""
        with self._lock:
            for upload in list(self._uploads.values()):
                if now - upload.began_at > self._timeout_s and not upload.given_up.is_set():
                    limit = f"task_overhead_timeout ({self._timeout_s:g} s)"
                    why = f"Uploading what the mini-batch has written took longer than {limit}."
                    self._give_up(upload, upload.failure or Failure("OUTPUT_UNWRITABLE", why))

    def close(self) -> None:
        """Begin nothing more; nobody hears of what is on its way."""
        with self._lock:
            for upload in self._uploads.values():
                upload.given_up.set()
            self._uploads.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Once it is closed: wait until nothing is on its way any more."""
        self._pool.shutdown()
        if (earlier := self._earlier) is not None:
            earlier.join()
            self._earlier = None

    def _begin(self, upload: _Upload) -> None:
        if not self._enters(upload):
            return
        try:
            if (earlier := self._earlier) is not None:
                earlier.join()
                self._earlier = None
            with self._user.acting():
                files = list(self._files(upload.folder))
        except Exception as error:
            self._failed(upload, visible(f"What the mini-batch has written can't be read: {error}"))
        else:
            self._submit(upload, files)
        self._leaves(upload)

    def _submit(self, upload: _Upload, files: list[tuple[str, str]]) -> None:
        for _, url in files:
            try:
                url.encode()
                storage_of(url).identity(url)
            except ValueError as error:  # before anything is there
                self._failed(upload, _words(url, error))
                return
        with self._lock:
            upload.files_left += len(files) - 1
        with suppress(RuntimeError):  # it was closed meanwhile
            for file, url in files:
                self._pool.submit(self._put, upload, file, url)

    def _files(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Each file, and the URL where it goes. Links are no files."""
        for number, url in enumerate(self._urls):
            root = str(folder / str(number))
            for current, _, names in os.walk(root):
                for name in names:
                    path = os.path.join(current, name)
                    if stat.S_ISREG(os.lstat(path).st_mode):
                        yield path, f"{url.rstrip('/')}/{path[len(root) + 1 :]}"

    def _put(self, upload: _Upload, path: str, url: str) -> None:
        if not self._enters(upload):
            return
        pauses = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while not upload.given_up.is_set():
            try:
                with self._opened(path, upload.given_up) as file:
                    storage_of(url).put(url, file, os.fstat(file.fileno()).st_size)
                with self._lock:
                    upload.files_left -= 1
                break
            except _FOR_GOOD as error:
                self._failed(upload, _words(url, error))
            except OSError as error:  # the last one is told when its time is over
                if not upload.given_up.is_set():
                    upload.failure = Failure("OUTPUT_UNWRITABLE", _words(url, error))
                    asked_again(url, "put")
                    upload.given_up.wait(pauses.next_s())
            except Exception as error:
                self._failed(upload, _words(url, error))
        self._leaves(upload)

    def _opened(self, path: str, given_up: threading.Event) -> BinaryIO:
        with self._user.acting():
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ValueError("it is not a file any more")
        return cast(BinaryIO, _Source(fd, given_up))

    def _failed(self, upload: _Upload, why: str) -> None:
        with self._lock:
            self._give_up(upload, Failure("OUTPUT_UNWRITABLE", why))

    def _give_up(self, upload: _Upload, failure: Failure) -> None:
        if not upload.given_up.is_set():
            upload.failure = failure
            upload.given_up.set()
            if not upload.at_work:  # a thread removes the folder before anybody writes there again
                upload.at_work += 1
                with suppress(RuntimeError):  # the node allows no more threads: one that there is does it
                    self._pool.submit(self._leaves, upload)

    def _enters(self, upload: _Upload) -> bool:
        """Return whether this thread may begin something for an upload; if so, it says when that `_leaves` nothing
        behind."""
        with self._lock:
            if upload.given_up.is_set():
                return False
            upload.at_work += 1
            return True

    def _leaves(self, upload: _Upload) -> None:
        with self._lock:
            upload.at_work -= 1
            is_last = not upload.at_work and (not upload.files_left or upload.given_up.is_set())
        if is_last:
            self._user.remove(upload.folder)
            with self._lock:
                self._end(upload)

    def _end(self, upload: _Upload) -> None:
        if self._uploads.get(upload.key) is upload:
            del self._uploads[upload.key]
            failure = upload.failure if upload.files_left else None
            self.done.append(Uploaded(upload.key, upload.process, upload.is_rest, failure))
            with suppress(BlockingIOError):  # whoever reads it is woken already
                os.write(self._wake, b"\1")


def _words(url: str, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    if isinstance(error, UnicodeEncodeError):
        reason = "the name of an object must be UTF-8"
    return visible(f"{url} can't be written: {reason}")
