"""stdout and stderr of the user's process, on a disk that may be full."""

import errno
import io
from typing import Any


class _LogFile(io.FileIO):
    """What the disk doesn't take is lost, and the script that printed it is none the wiser."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
                raise
            return memoryview(data).nbytes


def forgiving(stream: Any) -> io.TextIOWrapper:
    """The same stream, line by line, so that print() doesn't fail a mini-batch because the disk is full."""
    return io.TextIOWrapper(
        io.BufferedWriter(_LogFile(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
