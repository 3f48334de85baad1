"""The blocks of an Avro file: where they are and how many rows they have, without unpacking any of them.

A file is `Obj\\x01`, metadata, a sync marker of 16 bytes, and blocks: number of rows, number of bytes, so many bytes,
and the marker again (Avro 1.12, "Object Container Files"). So one small read for each block finds the next one, and the
marker after it shows that the file is whole up to there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from parallelrun_core.storage.interface import read_at, size_of
from parallelrun_master.planning.table_format import DamagedFile

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MAX_VARINT_BYTES: Final = 10
_MAX_BLOCK_HEAD_BYTES: Final = 2 * _MAX_VARINT_BYTES
"""A block begins with two numbers."""
_FIRST_READ: Final = 1 << 16
_LONGEST_HEADER: Final = 64 << 20
_CODECS: Final = ("null", "deflate", "bzip2", "snappy", "xz", "zstandard", "lz4")
_WHAT_TO_DO: Final = "copy the file again, or leave it out"


class AvroHeader(NamedTuple):
    schema: str
    """The schema as JSON."""
    sync: bytes
    end: int
    """The position where the first block begins."""


class Block(NamedTuple):
    """Some rows, which can only be read together."""

    start: int
    end: int
    rows: int


class _Cut(Exception):
    """The bytes end before what is in them does."""


def read_header(file: BinaryIO, name: str) -> AvroHeader:
    """The header of a file.

    Raises:
        DamagedFile: it is not an Avro file, or its rows are compressed in a way that nobody knows.
        OSError: it can't be read.
    """
    size = _FIRST_READ
    while True:
        data = read_at(file, 0, size)
        if not data.startswith(_MAGIC):
            reason = "it does not begin as one" if data else "it is empty; leave it out"
            raise DamagedFile(f"{name}: not an Avro file: {reason}")
        try:
            return _header(data, name)
        except _Cut:
            if len(data) < size or size >= _LONGEST_HEADER:
                raise DamagedFile(f"{name}: not an Avro file: its header is cut off; {_WHAT_TO_DO}") from None
        size *= 4


def _header(data: bytes, name: str) -> AvroHeader:
    metadata: dict[bytes, bytes] = {}
    at = len(_MAGIC)
    while True:
        count, at = _varint(data, at)
        if not count:
            break
        if count < 0:  # followed by the size of this part of the map
            count = -count
            _, at = _varint(data, at)
        for _ in range(count):
            key, at = _bytes(data, at)
            metadata[key], at = _bytes(data, at)
    sync = data[at : at + _SYNC_BYTES]
    if len(sync) < _SYNC_BYTES:
        raise _Cut
    codec = metadata.get(b"avro.codec", b"null").decode(errors="replace")
    if codec not in _CODECS:
        raise DamagedFile(f"{name}: its codec {codec!r} is not known; write it again with one of {', '.join(_CODECS)}")
    return AvroHeader(metadata.get(b"avro.schema", b"").decode(errors="replace"), sync, at + _SYNC_BYTES)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    if not 0 <= size <= len(data) - at:
        raise _Cut
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it: seven bits in each byte, the lowest first, which has the sign."""
    value = shift = 0
    for place in range(at, min(len(data), at + _MAX_VARINT_BYTES)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), place + 1
        shift += 7
    raise _Cut


def blocks_of(file: BinaryIO, header: AvroHeader, name: str) -> Iterator[Block]:
    """Yield the blocks of a file, in order.

    Raises:
        DamagedFile: the file is cut off or damaged, with the place.
        OSError: it can't be read.
    """
    size = size_of(file)
    start, head = header.end, read_at(file, header.end, _MAX_BLOCK_HEAD_BYTES)
    while head:
        try:
            rows, after = _varint(head, 0)
            length, after = _varint(head, after)
        except _Cut:
            if len(head) < _MAX_BLOCK_HEAD_BYTES:  # nothing follows it
                missing = f"its last block, at byte {start}, lacks the rest of its head"
                raise DamagedFile(f"{name}: cut off: {missing}; {_WHAT_TO_DO}", start) from None
            rows = length = after = -1
        end = start + after + length
        is_sound = rows >= 0 and length >= 0
        if is_sound and end + _SYNC_BYTES > size:
            missing = f"its last block, at byte {start}, lacks {end + _SYNC_BYTES - size} bytes"
            raise DamagedFile(f"{name}: cut off: {missing}; {_WHAT_TO_DO}", start)
        following = read_at(file, end, _SYNC_BYTES + _MAX_BLOCK_HEAD_BYTES) if is_sound else b""
        if following[:_SYNC_BYTES] != header.sync:
            raise DamagedFile(f"{name}: damaged: there is no sound block at byte {start}; {_WHAT_TO_DO}", start)
        yield Block(start, end + _SYNC_BYTES, rows)
        start, head = end + _SYNC_BYTES, following[_SYNC_BYTES:]
