"""Packs what is sent with a request into a zip: code, the context of an image, data, a model."""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Final, cast

from parallelrun_core.code.context import CONTEXT, context_files
from parallelrun_core.code.folder import LEAVE_OUT_HINT, FilesBelow
from parallelrun_core.code.snapshots import CODE, MAX_ZIP_BYTES, SnapshotLimits
from parallelrun_core.code.source import CodeSource
from parallelrun_core.errors import InvalidInput

_IN_MEMORY_BYTES: Final = 8 << 20
# The server refuses archives that are compressed too well, as zip bombs are. Source code is small anyway.
_COMPRESS_BELOW_BYTES: Final = 1 << 20
_WHERE_IT_IS: Final = "put it where the nodes can read it, and name it there: `--no-upload`, or a URL of a store"
_SOME_DATE: Final = (1980, 1, 1, 0, 0, 0)
_CODE: Final = replace(CODE, hint=f"{LEAVE_OUT_HINT}; data can be an input")


def zip_folder(folder: Path) -> IO[bytes]:
    """Pack everything below a folder; the same content always gives the same bytes.

    Returns:
        A temporary file, positioned at its beginning; closing it removes it.

    Raises:
        InvalidInput: the folder is missing, too large, or links to something outside it.
    """
    return zip_sources({"": CodeSource(folder)})


def zip_sources(sources: Mapping[str, CodeSource]) -> IO[bytes]:
    """Pack the code of several steps, each below its name at the top of the zip; otherwise as `zip_folder`."""
    for source in sources.values():
        if source.folder is not None and not source.folder.is_dir():
            raise InvalidInput.at("/code", f"there is no folder {str(source.folder)!r}")
    return _packed({name: (source.folder or Path(), source.files()) for name, source in sources.items()}, _CODE)


def zip_context(folder: Path, dockerfile: str) -> IO[bytes]:
    """Pack what an image is built of, as `zip_folder` does code.

    Raises:
        InvalidInput: as `code/context.py` says; or it is too large.
    """
    return _packed({"": (folder, context_files(folder, dockerfile))}, CONTEXT)


def zip_files(path: Path) -> IO[bytes]:
    """Pack a file, or everything below a folder, under its own name; the same content always gives the same bytes.

    Returns:
        A temporary file, positioned at its beginning; closing it removes it.

    Raises:
        InvalidInput: there is no such file or folder, it is too large, or a link in it leads to a folder above itself.
    """
    from parallelrun_core.assets.contents import files_of  # most submissions need none of it

    if not path.exists():
        raise InvalidInput.at("/path", f"there is no file or folder {str(path)!r}")
    with _new_zip() as (packed, archive):
        for parts, mode, file in files_of(path):
            size = os.fstat(file.fileno()).st_size
            if packed.tell() + size > MAX_ZIP_BYTES:
                message = f"{str(path)!r} has more than {MAX_ZIP_BYTES >> 20} MiB when packed"
                raise InvalidInput.at("/path", message, _WHERE_IT_IS)
            _add_file(archive, "/".join(parts), mode, size, file)
    return packed


def _packed(parts_of: Mapping[str, tuple[Path, FilesBelow]], limits: SnapshotLimits) -> IO[bytes]:
    count, remaining_bytes = 0, limits.bytes
    with _new_zip() as (packed, archive):
        for name, (folder, files) in parts_of.items():
            if name:
                archive.writestr(zipfile.ZipInfo(f"{name}/", _SOME_DATE), b"")  # also if there is nothing in it
            for parts, mode, file in files:
                size = os.fstat(file.fileno()).st_size
                count, remaining_bytes = count + 1, remaining_bytes - size
                if count > limits.files or remaining_bytes < 0:
                    excess = f"more than {limits.files:,} files or {limits.bytes >> 20} MiB"
                    raise limits.refusal(f"{str(folder)!r} holds {excess}")
                if packed.tell() + size > MAX_ZIP_BYTES:
                    raise limits.refusal(f"{str(folder)!r} holds more than {MAX_ZIP_BYTES >> 20} MiB when packed")
                _add_file(archive, "/".join([name, *parts] if name else parts), mode, size, file)
    return packed


@contextmanager
def _new_zip() -> Iterator[tuple[IO[bytes], zipfile.ZipFile]]:
    """Yield a temporary file, and the zip to be written into it. Then the file is at its beginning; after an error, it
    is gone.
    """
    packed = cast(IO[bytes], tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES))  # noqa: SIM115 - it is handed out
    try:
        with zipfile.ZipFile(packed, "w") as archive:
            yield packed, archive
    except BaseException:
        packed.close()
        raise
    packed.seek(0)


def _add_file(archive: zipfile.ZipFile, name: str, mode: int, size: int, source: IO[bytes]) -> None:
    member = zipfile.ZipInfo(name, _SOME_DATE)
    member.external_attr = (stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)) << 16
    member.compress_type = zipfile.ZIP_DEFLATED if size < _COMPRESS_BELOW_BYTES else zipfile.ZIP_STORED
    with archive.open(member, "w") as target:
        while chunk := source.read(1 << 20):
            target.write(chunk)
