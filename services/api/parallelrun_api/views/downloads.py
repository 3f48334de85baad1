"""Sends an open file: whole, a range of it (RFC 9110, section 14), or its last lines; or as a picture."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from io import FileIO
from typing import Final, Protocol
from urllib.parse import quote

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from parallelrun_api.http.errors import RangeNotSatisfiable
from parallelrun_api.views.files import MAX_TAIL_LINES, last_lines

TEXT: Final = "text/plain; charset=utf-8"
_CHUNK: Final = 1 << 18
_ONE_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, kw_only=True)
class ByteRange:
    """The requested part of a file."""

    range: str | None = None
    """The Range header."""
    if_range: str | None = None
    """The If-Range header: the range applies only to the file with this ETag."""
    tail: int | None = None
    """The number of last lines."""


class Content(Protocol):
    """Bytes that can be sent, of a size that is known before."""

    size: int
    modified_ns: int
    """Nanoseconds since the epoch."""

    def read(self, count: int, begin: int) -> bytes:
        """Return at most so many bytes from this one on; none: it has become shorter."""
        ...

    def last_lines(self, count: int) -> int:
        """Return where the last lines begin."""
        ...

    def close(self) -> None: ...


class OpenFile:
    """An open file. Takes over the file descriptor."""

    def __init__(self, fd: int) -> None:
        self._file = FileIO(fd, "rb")
        status = os.fstat(fd)
        self.size, self.modified_ns = status.st_size, status.st_mtime_ns

    def read(self, count: int, begin: int) -> bytes:
        return os.pread(self._file.fileno(), count, begin)

    def last_lines(self, count: int) -> int:
        return last_lines(self._file.fileno(), self.size, count)

    def close(self) -> None:
        self._file.close()


def download(
    fd: int, name: str, media_type: str, byte_request: ByteRange, threads: CapacityLimiter
) -> StreamingResponse:
    """The answer with a file, or a part of it, read in these threads. Takes over the file descriptor.

    Raises:
        RangeNotSatisfiable: the file has no such bytes.
    """
    return send(OpenFile(fd), name, media_type, byte_request, threads)


def send(
    content: Content, name: str, media_type: str, byte_request: ByteRange, threads: CapacityLimiter
) -> StreamingResponse:
    """The answer with a content, or a part of it, read in these threads; it is closed at the end.

    Raises:
        RangeNotSatisfiable: it has no such bytes.
    """
    size = content.size
    tag = f'"{content.modified_ns:x}-{size:x}"'
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(name, safe='')}",
        "ETag": tag,
        "Last-Modified": formatdate(content.modified_ns / 1e9, usegmt=True),
    }
    status, begin, end = 200, 0, size
    try:
        if byte_request.tail is not None:
            begin = content.last_lines(min(byte_request.tail, MAX_TAIL_LINES))
        elif byte_request.range and byte_request.if_range in (None, tag):
            part = _range_of(byte_request.range, size)
            if part is not None:
                status, (begin, end) = 206, part
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
    except BaseException:
        content.close()
        raise
    headers["Content-Length"] = str(end - begin)
    return _ContentResponse(content, _chunks(content, begin, end, threads), status, headers, media_type)


def _range_of(header: str, size: int) -> tuple[int, int] | None:
    """The bytes of a range; None for the whole file: several ranges and other units are not supported.

    Raises:
        RangeNotSatisfiable: it begins after the end.
    """
    match = _ONE_RANGE.fullmatch(header.replace(" ", ""))
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        begin, end = max(0, size - int(match[2])), size
    else:
        begin = int(match[1])
        end = min(size, int(match[2]) + 1) if match[2] else size
        if match[2] and int(match[2]) < begin:
            return None
    if begin >= end:
        raise RangeNotSatisfiable(
            f"The file has {size:,} bytes; {header!r} is after its end.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return begin, end


class _ContentResponse(StreamingResponse):
    """Sends bytes of a content, and closes it whatever happens."""

    def __init__(
        self, content: Content, chunks: AsyncIterator[bytes], status: int, headers: dict[str, str], media_type: str
    ) -> None:
        super().__init__(chunks, status, headers, media_type)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._content.close()


async def _chunks(content: Content, begin: int, end: int, threads: CapacityLimiter) -> AsyncIterator[bytes]:
    while begin < end:
        chunk = await run_sync(content.read, min(_CHUNK, end - begin), begin, limiter=threads)
        if not chunk:
            raise EOFError(f"the file became shorter while it was sent: {end - begin} bytes are missing")
        begin += len(chunk)
        yield chunk


BYTES: Final = "application/octet-stream"
_KINDS: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/bmp": re.compile(rb"BM.{4}\0{4}", re.DOTALL),
}
_LONGEST: Final = 12


def image_type_of(fd: int) -> str:
    """Return the media type of a picture in an open file, whatever its name; that of bytes for all else."""
    head = os.pread(fd, _LONGEST, 0)
    return next((media_type for media_type, pattern in _KINDS.items() if pattern.match(head)), BYTES)
