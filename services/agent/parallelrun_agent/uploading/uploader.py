"""Uploads folders to a store: several files at once, by threads that read them as the user who wrote them."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.outcome import Failure
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.storage.objects.meters import asked_again
from parallelrun_core.storage.stores import storage_of

THREADS: Final = 8
"""Files that are uploaded at the same time, each of them in up to three parts."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0
_FOR_GOOD: Final = (FileNotFoundError, PermissionError, ValueError)
"""What a store says that will say the same a minute later: no such bucket, not allowed, no such name possible."""


class Uploaded(NamedTuple):
    """The end of one upload."""

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
    left: int = 1
    """Files that are not there yet; one more until all are known."""
    failure: Failure | None = None
    is_over: bool = False


class Uploader:
    """For any number of folders at once.

    Args:
        urls: where the folders `0`, `1`, … in each of them go.
        user: who has written them.
        wake: a pipe that is written to when something was added to `done`.
        timeout_s: how long one folder may take.
    """

    def __init__(self, urls: Sequence[str], user: WorkerUser, *, wake: int, timeout_s: float) -> None:
        self.done: deque[Uploaded] = deque()
        self._urls, self._user, self._wake, self._timeout_s = urls, user, wake, timeout_s
        self._pool = ThreadPoolExecutor(THREADS, "upload")
        self._lock = threading.Lock()
        self._uploads: dict[str, _Upload] = {}
        self._closing = threading.Event()

    def begin(self, key: str, process: str, folder: Path, *, is_rest: bool = False) -> None:
        """Upload all files of a folder, and remove it then; `done` gets how it ended."""
        upload = _Upload(key, process, is_rest, folder, time.monotonic())
        with self._lock:
            self._uploads[key] = upload
        self._pool.submit(self._begin, upload)

    def poll(self, now: float) -> None:
        """End what takes too long. For calls a few times a second."""
        with self._lock:
            for upload in list(self._uploads.values()):
                if now - upload.began_at > self._timeout_s:
                    limit = f"task_overhead_timeout ({self._timeout_s:g} s)"
                    why = f"Uploading what the mini-batch has written took longer than {limit}."
                    self._end(upload, upload.failure or Failure("OUTPUT_UNWRITABLE", why))

    def close(self) -> None:
        """Begin nothing more; nobody hears of what is on its way."""
        self._closing.set()
        with self._lock:
            self._uploads.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, upload: _Upload) -> None:
        try:
            with self._user.acting():
                files = list(self._files(upload.folder))
        except Exception as error:
            files = []
            self._failed(upload, f"What the mini-batch has written can't be read: {error}")
        with self._lock:
            upload.left += len(files)
        for file, url in files:
            self._pool.submit(self._put, upload, file, url)
        self._one_less(upload)

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
        pauses = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while not upload.is_over and not self._closing.is_set():
            try:
                with self._opened(path) as file:
                    storage_of(url).put(url, file, os.fstat(file.fileno()).st_size)
                break
            except _FOR_GOOD as error:
                self._failed(upload, _words(url, error))
                break
            except OSError as error:  # the last one is told when its time is over
                upload.failure = Failure("OUTPUT_UNWRITABLE", _words(url, error))
                asked_again(url, "put")
                self._closing.wait(pauses.next_s())
            except Exception as error:
                self._failed(upload, _words(url, error))
                break
        else:
            return
        self._one_less(upload)

    def _opened(self, path: str) -> BinaryIO:
        with self._user.acting():
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ValueError("it is not a file any more")
        return os.fdopen(fd, "rb")

    def _failed(self, upload: _Upload, why: str) -> None:
        with self._lock:
            self._end(upload, Failure("OUTPUT_UNWRITABLE", why))

    def _one_less(self, upload: _Upload) -> None:
        with self._lock:
            upload.left -= 1
            is_there = not upload.left and not upload.is_over
        if is_there:
            self._user.remove(upload.folder)
            with self._lock:
                self._end(upload, None)

    def _end(self, upload: _Upload, failure: Failure | None) -> None:
        if not upload.is_over and self._uploads.pop(upload.key, None) is not None:
            self.done.append(Uploaded(upload.key, upload.process, upload.is_rest, failure))
            with suppress(BlockingIOError):  # whoever reads it is woken already
                os.write(self._wake, b"\1")
        upload.is_over = True


def _words(url: str, error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else error
    return f"{url} can't be written: {said}"
