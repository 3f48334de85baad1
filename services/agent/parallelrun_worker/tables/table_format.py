"""The base of the format of each kind of table, where files are read."""

import errno
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from parallelrun_worker.tables.arrow_arrays import arrow_of
from parallelrun_worker.tables.data_warnings import DataWarnings
from parallelrun_worker.tables.elsewhere import AskedFiles, Place, StagedFiles
from parallelrun_worker.tables.inference import Kind
from parallelrun_worker.tables.text_dtype import text_dtype_of

Open = Callable[..., Any]
Piece = tuple[Any, ...]
"""Path, start, end, whether both are where a record begins, index of the first row (-1: unknown); then, if they are not
all of those in the range, how many rows at its beginning are left out and how many there are (-1: all)."""


def bounded(expression: str) -> Open:
    """An `open` that refuses files whose paths, without links and with a slash at their end, don't match.

    It is for processes that read with the rights of a master, which could read more than the job's user may; a link can
    have been put in the way since a file was listed, so what counts is the file that was opened. A worker reads with
    its own rights, and needs no bounds.

    Raises:
        PermissionError: from the function that is returned, if it refuses a file.
    """
    allowed = re.compile(expression, re.DOTALL)

    def open_bounded(path: str, mode: str) -> Any:
        file = open(path, mode)  # noqa: SIM115 - the caller closes it
        real = os.readlink(f"/proc/self/fd/{file.fileno()}")
        if not allowed.match(f"{real}/"):
            file.close()
            raise PermissionError(errno.EACCES, f"it leads to {real!r}, which jobs may not use", path)
        return file

    return open_bounded


class UnreadableFile(ValueError):
    """A file can't be read; the message begins with its path."""


@contextmanager
def named(path: str) -> Iterator[None]:
    """Name this file in the errors of what can't be read in here, unless they name one.

    Raises:
        UnreadableFile: instead of the errors of readers.
    """
    try:
        yield
    except UnreadableFile:
        raise
    except _errors_of_readers() as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise  # an error of the system has the path itself
        raise UnreadableFile(f"{path}: {error}") from error


def _errors_of_readers() -> tuple[type[Exception], ...]:
    """The errors with which libraries tell that they can't read a file; those of pyarrow have few bases in common."""
    arrow = sys.modules.get("pyarrow.lib")
    return (OSError, ValueError, NotImplementedError, *((arrow.ArrowException,) if arrow is not None else ()))


class Records(ABC):
    """The records of one piece, as they are stored when they are grouped by keys; some can be read by themselves."""

    header: list[str | None]
    """The fields of the file's header, which it takes to read these records."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many there are."""

    @abstractmethod
    def frame(self, indices: list[int] | None = None) -> Any:
        """All of them, or these, as a DataFrame with an index from 0. Only all of them are warned of."""

    @abstractmethod
    def stored(self, indices: list[int], keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """These with their keys, as keys and bytes; records of one key may come as one, and any two may be joined."""


class TableFormat(ABC):
    """Reads the files of one input.

    Args:
        plan: its record in `inputs.json`; a process of a master adds `may_open` (see `bounded`), or `asks`, the
            descriptor of a socket (see `elsewhere`).
        schema_path: where its columns may be frozen.
    """

    needs_source = False
    """True if stored records can't be read without the path and `header` of their file."""
    imports: tuple[str, ...] = ()
    """The modules of libraries that it reads with, if they are installed."""
    suffixes: tuple[str, ...] = ()
    """The ends of the names of its files, by which `read_file` is found."""
    has_fixed_columns = True
    """True if the columns of the first files are those of all rows."""

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        self.plan = plan
        self.options: dict[str, Any] = plan["read"]
        self.open: Open = _opener(plan)
        self.warnings = DataWarnings()
        """About the rows that are read; who makes a `Table` may give it another one."""

    @staticmethod
    def read_file(path: str) -> Any:
        """All rows of a file as a DataFrame, by what the file says itself: as for a script, which has no plan."""
        raise NotImplementedError

    @cached_property
    def text_dtype(self) -> Any:
        """The dtype of columns of texts; None: they are objects."""
        return text_dtype_of(self.plan)

    def staged_at(self, places: dict[str, Place]) -> None:
        """Set where the files of the next pieces are, if they are staged."""
        if isinstance(self.open, StagedFiles):
            self.open.places = places

    @abstractmethod
    def names(self) -> list[str]:
        """The columns of the table, before any step, as far as its first files tell; a name may be there twice.

        Raises:
            OSError, ValueError, ImportError: these can't be read.
        """

    @abstractmethod
    def frame(self, piece: Piece) -> Any:
        """The rows of a piece, with an index from 0.

        Raises:
            OSError, ValueError, ImportError: it can't be read.
        """

    def arrow(self, piece: Piece) -> Any:
        """The rows of a piece as an Arrow table; raises as `frame` does."""
        return arrow_of(self.frame(piece), self.kinds())

    def arrow_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        """Stored records as an Arrow table; arguments are those of `frame_of_stored`."""
        return arrow_of(self.frame_of_stored(data, path, header), self.kinds())

    def kinds(self) -> dict[str, Kind]:
        """Return the kinds of the columns, by name, where they are known."""
        return {}

    def has_texts_of_values(self, rows: Any) -> bool:
        """Return whether a column of an Arrow table may have texts which stand for values of several types."""
        return True

    def objects(self, piece: Piece) -> list[dict[str, Any]]:
        """The rows of a piece as dicts, of a kind that has such rows; raises as `frame` does."""
        raise NotImplementedError

    @abstractmethod
    def records(self, piece: Piece) -> Records:
        """The rows of a piece, one by one.

        Raises:
            OSError, ValueError, ImportError: it can't be read.
        """

    @abstractmethod
    def frame_of_stored(self, data: bytes, path: str, header: list[str | None]) -> Any:
        """Stored records as a DataFrame, of which who has stored them has warned.

        Args:
            path, header: of their file, if it `needs_source`.
        """


def _opener(plan: dict[str, Any]) -> Open:
    if plan.get("is_staged"):
        return AskedFiles(plan["asks"]) if "asks" in plan else StagedFiles()
    return bounded(plan["may_open"]) if "may_open" in plan else open
