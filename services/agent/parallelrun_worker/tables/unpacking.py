"""Text files that are compressed: recognised by their first bytes, and unpacked into memory, up to a limit.

Nothing but unpacking finds the end of a record in one, so such a file is read as a whole.
"""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from parallelrun_worker.tables.crc32c import masked_crc32c
from parallelrun_worker.tables.elsewhere import Elsewhere

LIMIT_BYTES = 64 << 20
"""Most bytes of an unpacked file, unless the job says otherwise."""
MOST_MAGIC_BYTES = 10
_MOST_TIMES = 1000
_BOMB_BYTES = 8 << 20
"""From this size on, a file may not become more than `_MOST_TIMES` larger."""
_MOST_COUNTED = 2 << 30
"""So far, the size of a file beyond its limit is found out, to say which limit it takes."""
_CHUNK = 1 << 20
_SNAPPY_FRAMED = b"\xff\x06\0\0sNaPpY"
_MAGICS = {
    b"\x1f\x8b\x08": "gz", b"PK\x03\x04": "zip", b"PK00PK\x03\x04": "zip", b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zst", _SNAPPY_FRAMED: "snappy",
}  # fmt: skip
_BZ2 = (b"BZh", (b"1AY&SY", b"\x17rE8P\x90"))
"""What a file of bzip2 begins with, and what follows one byte later: its first block, or its end if it is empty."""
_SKIPPABLE = b"*M\x18"
"""A frame that holds no content begins with a byte from 0x50 to 0x5F and this, in files of zst and of lz4."""
LZ4 = b"\x04\x22\x4d\x18"
_LITTER = "__MACOSX/"
_OF_OFFICE = "[Content_Types].xml"


class TooLarge(ValueError):
    """A compressed file is larger, once it is unpacked, than its table allows."""


class Unpacked(Elsewhere):
    """The content of a compressed file."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self.size = len(data)

    def pread(self, size: int, at: int) -> bytes:
        return self._data[at : at + size]


def compression_of(head: bytes, path: str) -> str:
    """Return how a file is compressed, by its first bytes, or by its name where these don't tell; empty if it isn't."""
    if head.startswith(_BZ2[0]) and head[4:10] in _BZ2[1]:
        return "bz2"
    if _is_skippable(head, 0):
        return "zst"
    compression = next((name for magic, name in _MAGICS.items() if head.startswith(magic)), "")
    return compression or ("snappy" if path.lower().endswith(".snappy") else "")


def _is_skippable(packed: bytes, at: int) -> bool:
    return packed[at + 1 : at + 4] == _SKIPPABLE and packed[at] >> 4 == 5


def unpack(packed: bytes, compression: str, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a compressed file.

    Raises:
        ValueError: it is damaged, or larger than the limit, or no library here unpacks it.
    """
    parts, size = [], 0
    try:
        for part in _UNPACKERS[compression](packed, limit):
            size += len(part)
            if size > _BOMB_BYTES and size > _MOST_TIMES * len(packed):
                raise ValueError(f"this {compression} file becomes over {_MOST_TIMES:,} times larger; unpack it first")
            if size <= limit:
                parts.append(part)
            elif size > _MOST_COUNTED:
                break
            else:
                parts.clear()
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, struct.error) as error:
        raise _damaged(compression, error) from error
    except OSError as error:  # so do bz2 and Arrow say that data are damaged
        if error.errno is not None:
            raise
        raise _damaged(compression, error) from error
    if size > limit:
        raise _too_large(compression, size, limit)
    return b"".join(parts)


def _too_large(compression: str, size: int, limit: int) -> TooLarge:
    if size > _MOST_COUNTED:
        return TooLarge(f"unpacked, this {compression} file has more than {_MOST_COUNTED:,} bytes; unpack it first")
    needed = f"{-(-size // (1 << 20))}mb" if size > 1 << 20 else f"{-(-size // 1024)}kb"
    return TooLarge(
        f"unpacked, this {compression} file has {size:,} bytes, and the limit is {limit:,}; unpack it first, or write "
        f"unpacked_limit: {needed}, an option of the read step, which each worker needs as memory"
    )


def _damaged(compression: str, error: Exception) -> ValueError:
    return ValueError(f"this {compression} file is damaged or cut off ({error}); copy the file again, or leave it out")


def _read(stream: Any) -> Iterator[bytes]:
    while part := stream.read(_CHUNK):
        yield part


def _streams(packed: bytes, new: Callable[[], Any], padding: bytes = b"") -> Iterator[bytes]:
    """Yield the content of one stream after another: the library's own files take a damaged one for the end."""
    while packed:
        stream, data = new(), packed
        while not stream.eof:
            part = stream.decompress(data, _CHUNK)
            data = b""
            if part:
                yield part
            elif stream.needs_input:
                raise EOFError("its last stream is not whole")
        packed = stream.unused_data.lstrip(padding) if padding else stream.unused_data


def _zip(packed: bytes, limit: int) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith(_LITTER)]
        if len(members) != 1:
            if any(each.filename == _OF_OFFICE for each in members):
                raise ValueError("it is a document of Office, such as an Excel workbook: save it as text first")
            raise ValueError(f"this zip file has {len(members)} files, and is read if it has one; unpack it first")
        try:
            with archive.open(members[0]) as stream:
                yield from _read(stream)
        except (RuntimeError, NotImplementedError) as error:
            raise ValueError(f"this zip file can't be unpacked ({error}); unpack it first") from error


def _zst(packed: bytes, limit: int) -> Iterator[bytes]:
    at = 0
    while _is_skippable(packed, at):
        at += 8 + int.from_bytes(packed[at + 4 : at + 8], "little")
    if packed.startswith(LZ4, at):
        raise ValueError("it is an lz4 file, and no text: unpack it first")
    pa = _arrow("zst")
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        yield from _read(stream)


def _snappy(packed: bytes, limit: int) -> Iterator[bytes]:
    """Unpack the one of the three forms of Snappy files that the bytes have."""
    if packed.startswith(_SNAPPY_FRAMED):
        yield from _framed_snappy(packed, limit)
    elif (blocks := _hadoop_blocks(packed)) is not None:
        for block in blocks:
            yield _raw_snappy(block, limit)
    else:
        yield _raw_snappy(packed, limit)


def _framed_snappy(packed: bytes, limit: int) -> Iterator[bytes]:
    """Chunks: kind (1 byte), length (3), and of those with data a checksum (4) (snappy's framing_format.txt)."""
    at = 0
    while at < len(packed):
        kind, length = packed[at], int.from_bytes(packed[at + 1 : at + 4], "little")
        data = packed[at + 8 : at + 4 + length]
        if at + 4 + length > len(packed):
            raise EOFError("its last chunk is not whole")
        if kind <= 1:
            content = data if kind else _raw_snappy(data, limit)
            if masked_crc32c(content) != int.from_bytes(packed[at + 4 : at + 8], "little"):
                raise EOFError("the checksum of a chunk is another one")
            yield content
        elif kind < 0x80:
            raise EOFError(f"a chunk of the unknown kind {kind}")
        at += 4 + length


def _hadoop_blocks(packed: bytes) -> list[bytes] | None:
    """Blocks as Hadoop writes them: bytes of the text (4), then for each part its bytes (4) and itself."""
    blocks, at = [], 0
    while at < len(packed):
        if len(packed) - at < 8:
            return None
        size, length = struct.unpack_from(">II", packed, at)
        if not length or at + 8 + length > len(packed) or _length_of(packed[at + 8 : at + 13]) > size:
            return None
        block = packed[at + 8 : at + 8 + length]
        blocks.append(block)
        at += 8 + length
        size -= _length_of(block)
        while size > 0 and at + 4 <= len(packed):
            length = int.from_bytes(packed[at : at + 4], "big")
            block = packed[at + 4 : at + 4 + length]
            blocks.append(block)
            at += 4 + length
            size -= max(1, _length_of(block))
    return blocks


def _length_of(block: bytes) -> int:
    """Return how many bytes a block of Snappy has when it is unpacked, which it begins with."""
    value = 0
    for place, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value
    raise EOFError("its length is not there")


def _raw_snappy(block: bytes, limit: int) -> bytes:
    length = _length_of(block)
    if length > limit:
        raise _too_large("snappy", length, limit)
    return bytes(_arrow("snappy").Codec("snappy").decompress(block, decompressed_size=length)) if length else b""


def _arrow(compression: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        hint = "add it to the job's environment, or unpack the file first"
        raise ValueError(f"a {compression} file is unpacked with pyarrow: {hint}") from error
    return pyarrow


_UNPACKERS: dict[str, Callable[[bytes, int], Iterator[bytes]]] = {
    "gz": lambda packed, _: _read(gzip.GzipFile(fileobj=io.BytesIO(packed))),
    "bz2": lambda packed, _: _streams(packed, bz2.BZ2Decompressor),
    "xz": lambda packed, _: _streams(packed, lzma.LZMADecompressor, padding=b"\0"),
    "zip": _zip,
    "zst": _zst,
    "snappy": _snappy,
}
