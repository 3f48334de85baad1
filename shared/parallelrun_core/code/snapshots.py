"""Snapshots of the users' code: taken from a folder or a zip, kept by the hash of their content.

A zip comes from outside, so it is unpacked member by member into a private folder with limits on everything,
and moved into the store only if all of it is good.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from parallelrun_core.code.folder import LEAVE_OUT_HINT, SKIPPED_FOLDERS
from parallelrun_core.code.source import CodeSource
from parallelrun_core.code.stored import add_snapshot, digest_of, folder_beside, write_list
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.untrusted.paths import relative_parts

if TYPE_CHECKING:
    from parallelrun_core.storage.path_rule import PathRule

MAX_FILES: Final = 10_000
MAX_BYTES: Final = 512 << 20
MAX_ZIP_BYTES: Final = MAX_BYTES + (8 << 20)
"""Of a zip with so much that can't be compressed, and the names of its files."""
MAX_RATIO: Final = 200
MAX_DEPTH: Final = 32
_COPY_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SnapshotLimits:
    """The limits on a snapshot, and its name in errors."""

    noun: str
    pointer: str
    hint: str
    files: int
    bytes: int
    skipped: frozenset[str] = frozenset()
    """Folders in a zip that are left out."""

    def refusal(self, message: str) -> InvalidInput:
        return InvalidInput.at(self.pointer, message, self.hint)

    def unsafe(self, message: str) -> InvalidInput:
        """The error for a path that isn't taken."""
        return UnsafePath.at(self.pointer, message, self.hint)


CODE: Final = SnapshotLimits(
    noun="the code", pointer="/code", hint=LEAVE_OUT_HINT, files=MAX_FILES, bytes=MAX_BYTES, skipped=SKIPPED_FOLDERS
)
# What the standard library raises when the bytes of a zip are damaged; bzip2 adds an OSError without a number.
_DAMAGED: Final = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError,
    zlib.error, lzma.LZMAError, struct.error,
)  # fmt: skip
_NAME_CLASH: Final = frozenset({errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR})


def snapshot_folder(
    folder: Path | CodeSource, store: Path, *, leave_out: Path | None = None, rule: PathRule | None = None
) -> str:
    """Copy a code folder into the store; returns the snapshot's name. Links are followed only within the folder.

    A folder below it may be left out: the one that the services share, which holds this store.

    Args:
        folder: the folder alone, or with what is put beside its files.
        rule: what the folder is checked by, once it is open.

    Raises:
        InvalidInput: the folder is missing, refused by the rule, or over a limit.
    """
    source = folder if isinstance(folder, CodeSource) else CodeSource(folder)
    return store_files(source.files(leave_out, rule), store, CODE)


def snapshot_name(source: CodeSource, *, leave_out: Path | None = None, rule: PathRule | None = None) -> str:
    """Return what the snapshot of a code folder is called: its files are read, and nothing is written.

    Raises as `snapshot_folder`, whose parameters these are.
    """
    return digest_of(_digests(source.files(leave_out, rule), CODE))


def snapshot_zip(archive: IO[bytes], store: Path, limits: SnapshotLimits | None = None) -> str:
    """Unpack a zip into the store; returns the snapshot's name.

    Args:
        limits: by default those of code.

    Raises:
        UnsafePath: a member would land outside, is a link or a device, or comes twice.
        InvalidInput: not a zip, or over a limit.
    """
    limits = limits or CODE
    try:
        with zipfile.ZipFile(archive) as opened:
            return store_files(_members_of(opened, limits), store, limits)
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise InvalidInput.at(limits.pointer, f"{limits.noun} is not a readable zip: {error}") from error


def snapshot_nothing(store: Path) -> str:
    """Put an empty snapshot into the store, for a job that needs no code; returns its name."""
    return store_files(iter(()), store, CODE)


def _members_of(archive: zipfile.ZipFile, limits: SnapshotLimits) -> Iterator[tuple[tuple[str, ...], int, IO[bytes]]]:
    members = archive.infolist()
    if len(members) > limits.files:
        raise InvalidInput.at(limits.pointer, f"the zip has {len(members):,} members, more than {limits.files:,}")
    for member in members:
        parts = relative_parts(member.filename.removesuffix("/") or "/")
        mode = member.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise UnsafePath.at(limits.pointer, f"{member.filename!r} in the zip is neither a file nor a folder")
        if member.is_dir() or limits.skipped.intersection(parts):
            continue
        if member.file_size > max(MAX_RATIO * member.compress_size, _COPY_BYTES):
            message = f"{member.filename!r} in the zip is compressed more than {MAX_RATIO}:1"
            raise InvalidInput.at(limits.pointer, message)
        with archive.open(member) as file:
            yield parts, mode, file


def store_files(files: Iterator[tuple[tuple[str, ...], int, IO[bytes]]], store: Path, limits: SnapshotLimits) -> str:
    """Copy files into the store: where each is to be, its mode, and its content; returns the name of the copy.

    Raises:
        InvalidInput: it is over a limit.
    """
    with folder_beside(store) as beside:
        folder = beside / "made"
        folder.mkdir()
        digests = _digests(files, limits, folder)
        snapshot = folder.rename(beside / digest_of(digests))
        write_list(snapshot, digests)
        add_snapshot(snapshot, store)
        return snapshot.name


def _digests(
    files: Iterator[tuple[tuple[str, ...], int, IO[bytes]]], limits: SnapshotLimits, folder: Path | None = None
) -> dict[str, str]:
    """Return the hash of each file.

    Args:
        folder: where they are written, readable to all and writable to nobody.
    """
    digests: dict[str, str] = {}
    folded: set[tuple[str, ...]] = set()
    remaining_bytes = limits.bytes
    for parts, mode, source in files:
        key = tuple(part.casefold() for part in parts)
        if key in folded:
            raise UnsafePath.at(limits.pointer, f"{'/'.join(parts)!r} comes twice, letter case aside")
        if len(parts) > MAX_DEPTH:
            raise limits.unsafe(f"{'/'.join(parts)!r} is more than {MAX_DEPTH} folders deep")
        folded.add(key)
        if len(folded) > limits.files:
            raise limits.refusal(f"{limits.noun} has more than {limits.files:,} files")
        target = folder.joinpath(*parts) if folder is not None else None
        digest = hashlib.sha256()
        with nullcontext() if target is None else _created(target, limits) as copy:
            while chunk := source.read(_COPY_BYTES):
                remaining_bytes -= len(chunk)
                if remaining_bytes < 0:
                    raise limits.refusal(f"{limits.noun} has more than {limits.bytes >> 20} MiB")
                digest.update(chunk)
                if copy is not None:
                    copy.write(chunk)
        if target is not None:
            target.chmod(0o555 if mode & 0o100 else 0o444)
        digests["/".join(parts)] = digest.hexdigest() + ("x" if mode & 0o100 else "")
    return digests


def _created(target: Path, limits: SnapshotLimits) -> IO[bytes]:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("xb")
    except OSError as error:
        if error.errno not in _NAME_CLASH:
            raise
        raise UnsafePath.at(limits.pointer, f"{target.name[:100]!r} can't be unpacked: {error.strerror}") from error
