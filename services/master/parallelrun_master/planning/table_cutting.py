"""Cuts the files of a table into pieces, each the data of one mini-batch. No piece goes beyond its file.

How a file is cut depends on the kind of table: `formats` has a module for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from parallelrun_core.message import Piece
from parallelrun_core.mltable.plan import InputPlan
from parallelrun_core.path_rule import PathRule
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_master.planning.formats import format_of
from parallelrun_master.planning.table_format import RowWindow


class TableCutter:
    """Cuts the files of one input, one after another."""

    def __init__(self, plan: InputPlan, size: MiniBatchSize, rule: PathRule | None = None) -> None:
        self._window = RowWindow(*(plan.rows_wanted or (0, None)))
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
                yield from self._format.pieces(path)

    def whole(self, paths: Iterable[bytes]) -> list[Piece]:
        """A piece for each of these files.

        Raises:
            OSError, InvalidInput: as `pieces`.
        """
        pieces = []
        for path in paths:
            with _naming(path):
                pieces.append(self._format.whole(path))
        return pieces


@contextmanager
def _naming(path: bytes) -> Iterator[None]:
    """Name a file in the errors of reading it: a read that fails names none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fsdecode(path)
        raise
