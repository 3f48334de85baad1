"""The base of the cutting of each kind of table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_core.storage.interface import unpacked
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import FileVersion, Piece


class DamagedFile(InvalidInput):
    """A file can't be cut: it is no file of its kind, or not whole.

    Args:
        offset: from which byte on nothing of it could be cut.
    """

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class RowWindow:
    """The rows of the whole input that `skip` and `take` leave, while the rows are counted file by file."""

    def __init__(self, first: int, end: int | None) -> None:
        self.first = first
        self._end = end
        self.seen = 0
        """How many rows have been counted."""

    @property
    def is_over(self) -> bool:
        """No row from here on is wanted."""
        return self._end is not None and self.seen >= self._end

    def next(self, rows: int) -> range:
        """Return which of the next rows are wanted, of which there are this many."""
        low = min(rows, max(0, self.first - self.seen))
        high = rows if self._end is None else max(low, min(rows, self._end - self.seen))
        return range(low, high)


class TableCutting(ABC):
    """Cuts the files of one input.

    Args:
        window: which rows are wanted; whoever counts rows says so there.
        rule: which files may be opened; None: any.
    """

    disk_factor: ClassVar[float] = 4.0
    """Bytes on the disk for each byte of the table while its rows are grouped by keys, at least: what is spilled while
    they are sorted, and the result."""
    counts_rows: ClassVar[bool] = False
    """The ranges of its pieces are of rows, and not of bytes."""
    is_inferred: ClassVar[bool] = False
    """Columns are what the first rows look like; the first worker to read the table finds them, where it can."""

    def __init__(self, plan: InputPlan, size: MiniBatchSize, window: RowWindow, rule: PathRule | None = None) -> None:
        self.plan = plan
        self.rule = rule
        self.size_bytes = size.bytes
        self.size_rows = size.number if size.unit == "rows" else None
        """None: pieces of about `size_bytes`."""
        self.window = window
        self.version: FileVersion | None = None
        """Of the file whose turn it is; None: one that is read where it is."""

    def opened(self, path: bytes, *, is_streamed: bool = False) -> BinaryIO:
        """The file whose turn it is, in the version that was listed.

        Raises:
            OSError: it can't be opened.
        """
        version = unpacked(self.version) if self.version is not None else None
        return storage_of(path).open(path, self.rule, version=version, is_streamed=is_streamed)

    @abstractmethod
    def pieces(self, path: bytes) -> Iterator[Piece | None]:
        """Yield the pieces of one file, in order, and None now and then while it is searched.

        Raises:
            OSError: the file can't be read.
            InvalidInput: it is not what the table says.
        """

    def whole(self, path: bytes) -> Piece:
        """All of one file.

        Raises:
            OSError, InvalidInput: as `pieces`, as far as the beginning of the file tells.
        """
        return Piece(path)

    @staticmethod  # noqa: B027 - most kinds have nothing to add
    def prepare(plan: InputPlan, rule: PathRule | None = None) -> None:
        """Put into the plan, before it is frozen, what is to be the same as long as the job runs; its sample is known.

        Raises:
            InvalidInput: the table is not what the plan says.
        """

    @staticmethod
    def files(plan: InputPlan, rule: PathRule | None = None) -> Iterator[bytes] | None:
        """The files of a table that knows them itself; None: those that are at its path.

        Raises:
            InvalidInput: the table can't be read.
        """
        return None
