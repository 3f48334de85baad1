"""Files of tables that are in object stores, read in ranges: a worker has parts of them, a process of a master asks it.

Neither has our libraries. What is not there is never read as if it were: a part that wasn't brought here is an error.
"""

import errno
import io
import json
import os
from typing import Any, BinaryIO

Place = tuple[int, list[tuple[int, str]]]
"""How many bytes a file has, and its parts that are here: where each begins in the file, and its path."""

_MOST_OPEN = 64


class Elsewhere(io.RawIOBase):
    """A file of so many bytes. It has no descriptor, so that nobody reads past it by the operating system."""

    size: int

    def __init__(self) -> None:
        super().__init__()
        self._at = 0

    def pread(self, size: int, at: int) -> bytes:
        """Some of the bytes from a place on, at most so many; none only at the end of the file.

        Raises:
            OSError: they can't be read.
        """
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, at most so many; fewer only at the end."""
        count = max(0, self.size - self._at)
        count = count if size is None or size < 0 else min(size, count)
        parts = []
        while count and (part := self.pread(count, self._at)):
            parts.append(part)
            self._at += len(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        data = self.pread(len(buffer), self._at) if self._at < self.size else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class StagedFile(Elsewhere):
    """A file, or a part of it, that the agent has brought here."""

    def __init__(self, path: str, place: Place) -> None:
        super().__init__()
        self._path = path
        self.size, parts = place
        self._parts = [(start, start + os.stat(local).st_size, local) for start, local in parts]
        self._fds: dict[str, int] = {}

    def pread(self, size: int, at: int) -> bytes:
        if at >= self.size or size <= 0:
            return b""
        start, end, local = max(self._parts, key=lambda part: part[1] if part[0] <= at else -1)
        if not start <= at < end:
            raise OSError(errno.ENODATA, f"the mini-batch was thought not to need what is at byte {at:,}", self._path)
        data = os.pread(self._fd(local), min(size, end - at), at - start)
        if not data:
            raise OSError(errno.EIO, f"{local} has become shorter", self._path)
        return data

    def _fd(self, local: str) -> int:
        if local not in self._fds:
            if len(self._fds) >= _MOST_OPEN:
                self._close_all()
            self._fds[local] = os.open(local, os.O_RDONLY | os.O_CLOEXEC)
        return self._fds[local]

    def _close_all(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])

    def close(self) -> None:
        self._close_all()
        super().close()


class StagedFiles:
    """Opens files, those that are staged by what is here of them."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        """By the path by which the table knows them."""

    def __call__(self, path: str, mode: str) -> Any:
        place = self.places.get(path)
        return StagedFile(path, place) if place is not None else open(path, mode)


class AskedFiles:
    """Opens files by asking the process that has started this one.

    Args:
        fd: of a socket. A request is a line of JSON, `[path, start, size]`; the answer `[bytes that follow, size of the
            file]` or `[errno, what is wrong, path]`, and the bytes.
    """

    def __init__(self, fd: int) -> None:
        import socket  # workers never need it

        self._channel = socket.socket(fileno=os.dup(fd)).makefile("rwb")

    def __call__(self, path: str, mode: str) -> Any:
        return AskedFile(self, path)

    def ask(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        """Bytes of a file, and how many it has.

        Raises:
            OSError: they can't be read.
        """
        self._channel.write(json.dumps([path, start, size]).encode() + b"\n")
        self._channel.flush()
        answer = json.loads(self._channel.readline() or b"[5, 'nobody answers', '']")
        if len(answer) == len(("errno", "message", "path")):
            raise OSError(*answer)
        count, total = answer
        data = self._channel.read(count)
        if len(data) < count:
            raise OSError(errno.EIO, "nobody answers", path)
        return data, total


class AskedFile(Elsewhere):
    """A file that another process reads."""

    def __init__(self, files: AskedFiles, path: str) -> None:
        super().__init__()
        self._files = files
        self._path = path
        _, self.size = files.ask(path, 0, 0)

    def pread(self, size: int, at: int) -> bytes:
        return self._files.ask(self._path, at, min(size, self.size - at))[0] if at < self.size and size > 0 else b""


def read_some(file: BinaryIO, size: int, at: int) -> bytes:
    """Some of the bytes from a place on, at most so many; none only at the end of the file."""
    return file.pread(size, at) if isinstance(file, Elsewhere) else os.pread(file.fileno(), size, at)


def size_of(file: BinaryIO) -> int:
    """Return how many bytes the file has."""
    return file.size if isinstance(file, Elsewhere) else os.fstat(file.fileno()).st_size


def read_range(file: BinaryIO, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, or to the end of the file if it is shorter."""
    data = read_some(file, end - start, start)
    while data and len(data) < end - start:  # the system reads at most 2 GiB at once
        more = read_some(file, end - start - len(data), start + len(data))
        if not more:
            break
        data += more
    return data
