"""The memory of a script for later tries: answers that have cost money or time, by a key of its own.

Each worker process has a file of its own in the job's logs, a line of JSON for each key, `{"key": …, "value": …}`. A
line is on the disk when `remember` returns. Whoever asks for a key looks into the files of all workers of the job, on
all nodes, and of the job that it resumes from. So what a worker has paid for before it died is not paid for again.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

from parallelrun_worker.script_api.entry_script import EntryScript
from parallelrun_worker.script_api.refusals import MemoryFull

MAX_BYTES = 1 << 30
"""Of a worker process's file."""
MAX_KEY_BYTES = 1 << 10
MAX_VALUE_BYTES = 4 << 20
_MISSING = object()
_DIGEST_BYTES = 16


class _LinePosition(NamedTuple):
    """The place of a line."""

    file: int
    """Number of the file."""
    offset: int
    length: int


class Memory:
    """The memory of a job, as one worker process has it. Safe in threads.

    Args:
        path: the file of this process, created for the first key. Empty: outside of a job, all is kept in memory only.
        folders: those with the files of all processes, this job's first.
    """

    _instance: ClassVar[Memory | None] = None

    def __init__(self, path: str = "", folders: Sequence[str] = (), *, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._folders = folders
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._fd = -1
        self._written = self._synced = 0
        self._own: dict[bytes, bytes] = {}
        """Lines of this process if it has no file."""
        self._places: dict[bytes, _LinePosition] = {}
        self._files: list[str] = []
        self._read_up_to: dict[str, tuple[int, int]] = {}
        """Of each file, its number and the offset up to which it is known."""

    @classmethod
    def of_this_process(cls) -> Memory:
        """Return the memory of the job that this process works for; outside of a job, one of this process alone."""
        if cls._instance is None:
            job = EntryScript._settings
            folder = os.path.join(job["logs"], "user", "remembered") if job.get("logs") else ""
            path = os.path.join(folder, job["node"], f"{job['process']}.jsonl") if folder else ""
            cls._instance = cls(path, [folder] if folder else [])
            os.register_at_fork(after_in_child=cls._instance.in_child)
        return cls._instance

    def in_child(self) -> None:
        """Go on in a child process, with a file of its own: offsets in a common one would be wrong."""
        self._lock, self._sync_lock = threading.Lock(), threading.Lock()  # another thread may have held them
        if self._path:
            if self._fd >= 0:
                os.close(self._fd)
            self._path = f"{os.path.splitext(self._path)[0]}.{os.getpid()}.jsonl"
            self._fd, self._written, self._synced = -1, 0, 0

    def remember(self, key: str, value: Any) -> None:
        """Keep a value, which JSON must be able to hold, until the job is deleted. It is on the disk on return.

        Raises:
            ValueError: key or value is too long, or is nothing that JSON can hold.
            MemoryFull: this process has remembered too much.
            OSError: the disk doesn't take it.
        """
        self._sync(self._append(key, value))

    async def aremember(self, key: str, value: Any) -> None:
        """Do the same from a coroutine: those that wait at the same time share one write to the disk."""
        end = self._append(key, value)
        if end > self._synced:
            await asyncio.get_running_loop().run_in_executor(None, self._sync, end)

    def recall(self, key: str, default: Any = None) -> Any:
        """Return the value that any worker of the job, or of the job that it resumes from, has remembered."""
        digest = _digest(key)
        with self._lock:
            if not self._path:
                line = self._own.get(digest)
                return default if line is None else json.loads(line)["value"]
            place = self._places.get(digest)
            if place is None:
                self._read_on()
                place = self._places.get(digest)
            value = self._value(place, key) if place is not None else _MISSING
        return default if value is _MISSING else value

    def _append(self, key: str, value: Any) -> int:
        """Add a line; returns up to where the file must be on the disk for it."""
        digest = _digest(key)
        try:
            line = json.dumps({"key": key, "value": value}, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        except (TypeError, RecursionError) as error:
            raise ValueError(f"what is remembered of {key[:80]!r} is nothing that JSON can hold: {error}") from error
        if len(key.encode()) > MAX_KEY_BYTES or len(line) > MAX_VALUE_BYTES:
            raise ValueError(
                f"what is remembered of {key[:80]!r} is too long: a key has up to {MAX_KEY_BYTES:,} bytes, a value up "
                f"to {MAX_VALUE_BYTES:,}"
            )
        with self._lock:
            if not self._path:
                self._own[digest] = line
                return 0
            if self._fd < 0:
                self._open()
            if self._written + len(line) > self._max_bytes:
                raise MemoryFull(f"this worker has remembered {self._written:,} bytes, and may not remember more")
            offset = self._written
            self._write(line)
            number, _ = self._read_up_to[self._path]
            self._places[digest] = _LinePosition(number, offset, len(line))
            self._read_up_to[self._path] = number, self._written
            return self._written

    def _open(self) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(self._path, flags, 0o644)
        except PermissionError:  # the server has written it anew, without what was deleted
            self._path = f"{os.path.splitext(self._path)[0]}.{os.getpid()}.jsonl"
            self._fd = os.open(self._path, flags, 0o644)
        self._written = os.fstat(self._fd).st_size
        if self._written and os.pread(self._fd, 1, self._written - 1) != b"\n":  # of a process that died in between
            self._write(b"\n")
        number, _ = self._read_up_to.get(self._path, (len(self._files), 0))
        if number == len(self._files):
            self._files.append(self._path)
        self._read_file(self._path, number)
        self._sync_folder()

    def _sync_folder(self) -> None:
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, data: bytes) -> None:
        written = os.write(self._fd, data)
        self._written += written
        if written < len(data):  # the next line begins a new one
            self._written += os.write(self._fd, b"\n")
            raise OSError(f"only {written:,} of {len(data):,} bytes could be written to {self._path}")

    def _sync(self, end: int) -> None:
        """Put the file on the disk up to there, unless another thread has done so meanwhile."""
        if end <= self._synced:
            return
        with self._sync_lock:
            if end <= self._synced:
                return
            written = self._written
            os.fdatasync(self._fd)
            self._synced = written

    def _read_on(self) -> None:
        """Take note of what all processes have remembered since the last time."""
        for path in self._all_files():
            number, _ = self._read_up_to.get(path, (len(self._files), 0))
            if number == len(self._files):
                self._files.append(path)
            self._read_file(path, number)

    def _all_files(self) -> Iterator[str]:
        for folder in self._folders:
            for node in _entries(folder):
                yield from (path for path in _entries(node) if path.endswith(".jsonl"))

    def _read_file(self, path: str, number: int) -> None:
        _, offset = self._read_up_to.get(path, (number, 0))
        try:
            if os.stat(path).st_size > offset:
                with open(path, "rb") as file:
                    file.seek(offset)
                    for line in file:
                        if not line.endswith(b"\n"):  # it is being written
                            break
                        key = _key_of(line)
                        if key is not None:
                            self._places.setdefault(_digest(key), _LinePosition(number, offset, len(line)))
                        offset += len(line)
        except OSError:  # a job that was deleted, or a file that isn't ours to read
            pass
        self._read_up_to[path] = number, offset

    def _value(self, place: _LinePosition, key: str) -> Any:
        try:
            with open(self._files[place.file], "rb") as file:
                line = json.loads(os.pread(file.fileno(), place.length, place.offset))
        except (OSError, ValueError):
            return _MISSING
        return line["value"] if line.get("key") == key else _MISSING


def _entries(folder: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(folder))
    except OSError:
        return []


def _key_of(line: bytes) -> str | None:
    """Return the key of a line; None: it is torn."""
    try:
        entry = json.loads(line)
        return entry["key"] if isinstance(entry["key"], str) else None
    except (ValueError, LookupError, TypeError):
        return None


def _digest(key: str) -> bytes:
    if not isinstance(key, str):
        raise ValueError(f"a key of what is remembered must be a text, not {key!r}")
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
