"""A look at the footer of a Parquet file: whether what it says of columns may be asked for."""

import io
import os
from collections.abc import Sequence
from typing import Any

_ENDLESS = 1 << 62


class _Empty(io.RawIOBase):
    """A file without content, for a reader that is to look at a footer only.

    It ends where others would raise an error: that of Python, with its traceback, pyarrow would keep for as long as the
    process runs, and with it all that the functions up to here have in their variables.
    """

    def __init__(self) -> None:
        self._at = 0
        self.is_read = False
        """Whether somebody has tried to read."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: _ENDLESS}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, _size: int = -1, /) -> bytes:
        self.is_read = True
        return b""


def check_footer(footer: Any, groups: Sequence[int] | None = None) -> None:
    """Let pyarrow look at each column of each row group as its reader does, before anybody asks the footer for one.

    Of a damaged one, asking ends the whole process: there, pyarrow passes on no error of the library below it.

    Args:
        footer: the `pyarrow.parquet.FileMetaData` of a file.
        groups: numbers of the row groups to look at; None: all.

    Raises:
        OSError: the footer is damaged.
    """
    import pyarrow.parquet as pq

    empty = _Empty()
    file = pq.ParquetFile(empty, metadata=footer, pre_buffer=True)  # so all extents are computed at first
    try:
        # Threads of older releases (seen with 15 to 23) go on without the file once one has failed: the process ends.
        numbers = range(footer.num_row_groups) if groups is None else groups
        next(file.iter_batches(row_groups=numbers, use_threads=False), None)
    except OSError:
        if not empty.is_read:  # only then is it about the footer
            raise
    except (ValueError, NotImplementedError):  # a type that it can't read: workers say so
        pass
