"""The mini-batch message: stored on Redis and in the manifest, and handed to an agent.

A message is a MessagePack array `[kind, items, payload]`:

    kind 0, FILES        payload = groups of files (below)
    kind 1, FILES_ZSTD   the same, compressed with Zstandard
    kind 2, REFERENCE    payload = MessagePack array [term, offset] of the full message in the manifest
    kind 3, DESCRIBED    payload = MessagePack array [input, keys, pieces, groups, versions]: see `DescribedMiniBatch`
    kind 4, DESCRIBED_ZSTD   the same, compressed with Zstandard
    kind 5, RETRIED      payload = MessagePack array [message, items], see `RetriedItems`; on Redis only

A plain list of files has kind 0 or 1. Anything else is described: rows of a table, files with the values of their
partition keys, files that are copied or staged first, or a rank alone. `items` of a table is 0 unless the master
counted its rows: only the worker that reads a range knows how many there are.

A group is a folder's path, NUL, then the names in it, NUL between them; groups are separated by two NULs.
So a folder's path appears once, no name is ever quoted, and a whole group turns into paths by one
`bytes.replace`. Names are bytes: whatever the operating system allows comes back unchanged.

A message on Redis has at most `MAX_MESSAGE_BYTES`; a REFERENCE stands for a longer one. In the manifest every message
is full.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import zstandard

from parallelrun_core.errors import CorruptLog

MAX_MESSAGE_BYTES: Final = 65_536

FILES: Final = 0
FILES_ZSTD: Final = 1
REFERENCE: Final = 2
DESCRIBED: Final = 3
DESCRIBED_ZSTD: Final = 4
RETRIED: Final = 5
_DESCRIBED_KINDS: Final = (DESCRIBED, DESCRIBED_ZSTD)

# Below this, starting Zstandard costs more time than the saved bytes are worth.
_COMPRESS_FROM_BYTES: Final = 1024
# A mini-batch may hold any number of paths, but no message may make a decoder fill the memory.
_MAX_DECODED_BYTES: Final = 1 << 31

# Level 1 also packs names tighter: higher levels take chance matches in random ones, which cost more than they save.
_compressor = zstandard.ZstdCompressor(level=1)
_decompressor = zstandard.ZstdDecompressor()


class Message(msgspec.Struct, array_like=True, frozen=True):
    """A mini-batch as it is stored and sent."""

    kind: int
    items: int
    payload: bytes


class ManifestReference(msgspec.Struct, array_like=True, frozen=True):
    """The position of the full message in the manifest."""

    term: int
    offset: int


class FileVersion(msgspec.Struct, array_like=True, frozen=True):
    """The version of a file that was listed: tells its content from a later one."""

    size_bytes: int
    tag: bytes = b""
    """An ETag; a hash in it is kept as the bytes that it stands for."""
    modified: float = 0.0
    """Seconds since the epoch, by the storage's clock; 0 if there is a tag."""


class Remote(msgspec.Struct, array_like=True, frozen=True):
    """The part of a piece that staging needs before the file is read."""

    version: FileVersion
    """The version of the file that was cut."""
    extents: list[tuple[int, int]] = []
    """The bytes that its rows take, as starts and ends; none: they follow from the piece."""


class Piece(msgspec.Struct, array_like=True, frozen=True):
    """A range of one file of a table: of its bytes, or of its rows (Parquet)."""

    path: bytes
    start: int = 0
    end: int = -1
    """-1: to the end of the file."""
    is_aligned: bool = False
    """Records begin at both ends. Otherwise the range owns the records that begin in it."""
    first_row: int = -1
    """Index of its first row in the whole input; -1: nobody has counted."""
    left_out: int = 0
    """Number of rows at the beginning of the range are not its own."""
    rows: int = -1
    """Number of it has after those; -1: all, and nobody has counted."""
    remote: Remote | None = None
    """None: the file is read where it is."""
    has_sound_quotes: bool = False
    """Each quote in it opens or closes a field beside a delimiter or line end, or is doubled: nobody has to look."""

    @property
    def rest(self) -> tuple[int, int, bool, int, int, int, bool]:
        """Return what who reads the rows needs beside the path."""
        return self.start, self.end, self.is_aligned, self.first_row, self.left_out, self.rows, self.has_sound_quotes


class DescribedMiniBatch(msgspec.Struct, array_like=True, frozen=True):
    """A mini-batch that is more than a list of files."""

    input: int
    """Index of its input in `input_data`; -1: none, it has only a rank."""
    keys: list[str | None] = []
    """Values of the job's `partition_keys`, in their order."""
    pieces: list[Piece] = []
    """The ranges of a table to read, in this order."""
    groups: bytes = b""
    """Instead of pieces: groups of files."""
    versions: list[FileVersion] = []
    """The versions of the groups' files, in their order; none for files that are read where they are."""


class RetriedItems(msgspec.Struct, array_like=True, frozen=True):
    """The items of a mini-batch that are to be run again, and where the rows of its others are."""

    part: str
    """Name of the part file below `parts/`; empty when no rows were written."""
    offset: int
    length: int
    crc: int
    rows: int
    """Number of rows there, one for each of the other items."""
    items: int
    lost: list[tuple[int, int]]
    """Index of the first item and number of items, in order."""


class _Retried(msgspec.Struct, array_like=True, frozen=True):
    message: bytes
    items: RetriedItems


_encoder = msgspec.msgpack.Encoder()
_message_decoder = msgspec.msgpack.Decoder(Message)
_reference_decoder = msgspec.msgpack.Decoder(ManifestReference)
_described_decoder = msgspec.msgpack.Decoder(DescribedMiniBatch)
_retried_decoder = msgspec.msgpack.Decoder(_Retried)


def encode_files(groups: Iterable[tuple[bytes, list[bytes]]], items: int) -> bytes:
    """The full message for files given as `(folder, names)` groups; `items` is the number of names."""
    payload = join_groups(groups)
    if len(payload) < _COMPRESS_FROM_BYTES:
        return _encoder.encode(Message(FILES, items, payload))
    return _encoder.encode(Message(FILES_ZSTD, items, _compressor.compress(payload)))


def join_groups(groups: Iterable[tuple[bytes, list[bytes]]]) -> bytes:
    """`(folder, names)` groups as they are in a message."""
    return b"\0\0".join([folder + b"\0" + b"\0".join(names) for folder, names in groups])


def encode_described(described: DescribedMiniBatch, items: int) -> bytes:
    """The full message of a mini-batch that is more than a list of files."""
    payload = _encoder.encode(described)
    if len(payload) < _COMPRESS_FROM_BYTES:
        return _encoder.encode(Message(DESCRIBED, items, payload))
    return _encoder.encode(Message(DESCRIBED_ZSTD, items, _compressor.compress(payload)))


def encode_reference(items: int, term: int, offset: int) -> bytes:
    """The message that replaces one that is too long for Redis."""
    return _encoder.encode(Message(REFERENCE, items, _encoder.encode(ManifestReference(term, offset))))


def encode_retried(raw: bytes, items: RetriedItems) -> bytes:
    """The message for a mini-batch of which only these items are to be run, for any of its full or short messages."""
    return _encoder.encode(Message(RETRIED, items.items, _encoder.encode(_Retried(raw, items))))


def is_retried(raw: bytes) -> bool:
    """Return whether this is a message of retried items, if it is a message at all."""
    return raw[1:2] == b"\x05"  # the kind, right after the head of the array


def retried_of(raw: bytes) -> tuple[bytes, RetriedItems | None]:
    """Return the message of the mini-batch itself, and which of its items are to be run; None: all of them.

    Raises:
        CorruptLog: these bytes are not a message.
    """
    if not is_retried(raw):
        return raw, None
    try:
        retried = _retried_decoder.decode(decode(raw).payload)
    except msgspec.DecodeError as error:
        raise CorruptLog(f"not a message of retried items: {error}") from error
    return retried.message, retried.items


def decode(raw: bytes) -> Message:
    """Read a message.

    Raises:
        CorruptLog: these bytes are not a message.
    """
    try:
        return _message_decoder.decode(raw)
    except msgspec.DecodeError as error:
        raise CorruptLog(f"not a mini-batch message: {error}") from error


def reference_of(message: Message) -> ManifestReference:
    """Return where a REFERENCE message points to."""
    return _reference_decoder.decode(message.payload)


def is_described(message: Message) -> bool:
    """Return whether it is more than a list of files."""
    return message.kind in _DESCRIBED_KINDS


def described_of(message: Message) -> DescribedMiniBatch:
    """The content of a DESCRIBED message.

    Raises:
        CorruptLog: it is of another kind, or its payload can't be read.
    """
    if not is_described(message):
        raise CorruptLog(f"a message of kind {message.kind} is not a described one")
    payload = message.payload if message.kind == DESCRIBED else _unpacked(message.payload)
    try:
        return _described_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise CorruptLog(f"mini-batch message: {error}") from error


def files_of(message: Message) -> list[bytes]:
    """The paths of all files that a message of any kind names; a file of a table may come twice.

    Raises:
        CorruptLog: its payload can't be read.
    """
    if not is_described(message):
        return paths_of(message).split(b"\0")
    described = described_of(message)
    return [*described_paths(described), *(piece.path for piece in described.pieces)]


def listed_versions(message: Message) -> list[FileVersion]:
    """The versions of what `files_of` names, in that order; none for files that are read where they are."""
    if not is_described(message):
        return []
    described = described_of(message)
    return described.versions or [piece.remote.version for piece in described.pieces if piece.remote is not None]


def split_groups(payload: bytes) -> list[bytes]:
    """The groups of a message, still encoded."""
    return payload.split(b"\0\0") if payload else []


def described_paths(described: DescribedMiniBatch) -> list[bytes]:
    return [path for group in split_groups(described.groups) for path in _paths_of_group(group).split(b"\0")]


def paths_of(message: Message) -> bytes:
    """All paths of a FILES message, NUL between them: the form in which a worker receives them.

    Raises:
        CorruptLog: the message holds no files, or its payload can't be read.
    """
    groups = _groups(message)
    return _paths_of_group(groups[0]) if len(groups) == 1 else b"\0".join(map(_paths_of_group, groups))


def groups_of(message: Message) -> list[tuple[bytes, list[bytes]]]:
    """The `(folder, names)` groups of a FILES message: the inverse of `encode_files`.

    Raises:
        CorruptLog: the message holds no files, or its payload can't be read.
    """
    groups = []
    for group in _groups(message):
        folder, *names = group.split(b"\0")
        groups.append((folder, names))
    return groups


def _groups(message: Message) -> list[bytes]:
    if message.kind == FILES:
        return message.payload.split(b"\0\0")
    if message.kind != FILES_ZSTD:
        raise CorruptLog(f"a message of kind {message.kind} holds no paths")
    return _unpacked(message.payload).split(b"\0\0")


def _unpacked(payload: bytes) -> bytes:
    try:
        if zstandard.frame_content_size(payload) > _MAX_DECODED_BYTES:
            raise CorruptLog("mini-batch message: it unpacks to more than 2 GiB")
        return _decompressor.decompress(payload)
    except (zstandard.ZstdError, MemoryError) as error:
        raise CorruptLog(f"mini-batch message: {error}") from error


def _paths_of_group(group: bytes) -> bytes:
    folder, _, names = group.partition(b"\0")
    prefix = folder if folder.endswith(b"/") or not folder else folder + b"/"
    return prefix + names.replace(b"\0", b"\0" + prefix)
