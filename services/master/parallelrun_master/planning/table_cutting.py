"""Cuts the files of a table into pieces, each the data of one mini-batch. No piece goes beyond its file.

How a file is cut depends on the kind of table: `formats` has a module for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec

from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.message import Piece, Remote
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.table_format import DamagedFile, RowWindow
from parallelrun_master.planning.versions import Versions


class TableCutter:
    """Cuts the files of one input, one after another.

    Args:
        versions: those that were listed, if the files are elsewhere.
        warn: called with a warning where rows can't be counted that `take` and `skip` would count.
    """

    def __init__(
        self,
        plan: InputPlan,
        size: MiniBatchSize,
        rule: PathRule | None = None,
        versions: Versions | None = None,
        *,
        warn: Callable[[DataWarning], object] = lambda _: None,
    ) -> None:
        self._warn = warn
        self._versions = versions
        self._window = RowWindow(*(plan.rows_wanted or (0, None)))
        self._counts_rows = plan.rows_wanted is not None
        self._is_counted = True
        """Whether it is known how many rows the files before have."""
        self._format = format_of(plan.kind)(plan, size, self._window, rule)

    def pieces(self, paths: Iterable[bytes]) -> Iterator[Piece | None]:
        """Yield the pieces of these files, in order, and None now and then while a file is searched.

        Raises:
            OSError: a file can't be read.
            InvalidInput: a file is not what the table says.
        """
        for path in paths:
            if self._window.is_over:
                return
            with _naming(path):
                self._begin(path)
                yield from self._pieces_of(path)

    def _pieces_of(self, path: bytes) -> Iterator[Piece | None]:
        """The pieces of one file; what is damaged of it is one more, so that only its mini-batch fails, by its name."""
        try:
            for piece in self._format.pieces(path):
                yield self._complete(piece) if piece is not None else None
        except DamagedFile as error:
            if self._counts_rows:
                self._warn(_uncounted(path))
            self._is_counted = False
            yield self._complete(Piece(path, error.offset))

    def whole(self, paths: Iterable[bytes]) -> list[Piece]:
        """A piece for each of these files.

        Raises:
            OSError, InvalidInput: as `pieces`.
        """
        pieces = []
        for path in paths:
            with _naming(path):
                self._begin(path)
                try:
                    piece = self._format.whole(path)
                except DamagedFile:  # as the mini-batch says that has it
                    piece = Piece(path)
                pieces.append(self._complete(piece))
        return pieces

    def _begin(self, path: bytes) -> None:
        self._format.version = self._versions.taken_of(path) if self._versions is not None else None

    def _complete(self, piece: Piece) -> Piece:
        version = self._format.version
        if not self._is_counted:
            piece = msgspec.structs.replace(piece, first_row=-1)
        if version is None or piece.remote is not None:
            return piece
        return msgspec.structs.replace(piece, remote=Remote(version))


@contextmanager
def _naming(path: bytes) -> Iterator[None]:
    """Name a file in the errors of reading it: a read that fails names none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fsdecode(path)
        raise


def _uncounted(path: bytes) -> DataWarning:
    event = "a part that can't be read has no rows for take and skip, so they may choose others than in the whole file"
    remedy = "mend the file, or leave it out of the input"
    return DataWarning("uncounted", os.fsdecode(path), "", event, remedy, 1, "file")
