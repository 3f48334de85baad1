"""Packs a file or folder of data, or of a model, into the zip that is sent with its document."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Final, cast

from parallelrun.packaging.code import add_file
from parallelrun_core.assets.contents import files_of
from parallelrun_core.code.snapshots import MAX_ZIP_BYTES
from parallelrun_core.errors import InvalidInput

_IN_MEMORY_BYTES: Final = 8 << 20
_WHERE_IT_IS: Final = "put it where the nodes can read it, and name it there: `--no-upload`, or a URL of a store"


def zip_files(path: Path) -> IO[bytes]:
    """Pack a file, or everything below a folder, under its own name; the same content always gives the same bytes.

    Returns:
        A temporary file, positioned at its beginning; closing it removes it.

    Raises:
        InvalidInput: there is no such file or folder, it is too large, or a link in it leads to a folder above itself.
    """
    if not path.exists():
        raise InvalidInput.at("/path", f"there is no file or folder {str(path)!r}")
    packed = cast(IO[bytes], tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES))  # noqa: SIM115 - it is returned
    try:
        with zipfile.ZipFile(packed, "w") as archive:
            for parts, mode, file in files_of(path):
                size = os.fstat(file.fileno()).st_size
                if packed.tell() + size > MAX_ZIP_BYTES:
                    message = f"{str(path)!r} has more than {MAX_ZIP_BYTES >> 20} MiB when packed"
                    raise InvalidInput.at("/path", message, _WHERE_IT_IS)
                add_file(archive, "/".join(parts), mode, size, file)
    except BaseException:
        packed.close()
        raise
    packed.seek(0)
    return packed
