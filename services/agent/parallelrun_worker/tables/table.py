"""An input that is a table: from the pieces of a mini-batch to its DataFrame."""

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from parallelrun_worker.tables import grouped
from parallelrun_worker.tables.data_warnings import DataWarning, DataWarnings
from parallelrun_worker.tables.elsewhere import Place
from parallelrun_worker.tables.formats import format_of
from parallelrun_worker.tables.path_keys import PathKeys
from parallelrun_worker.tables.plan_records import completed
from parallelrun_worker.tables.steps import COUNTING, EXTRACT, apply_step, check_kept, warning_of
from parallelrun_worker.tables.table_format import Piece, TableFormat, UnreadableFile, named
from parallelrun_worker.tables.text_dtype import as_texts
from parallelrun_worker.tables.together import together
from parallelrun_worker.tables.values import Values

PATH = "Path"
PATH_TWICE = f"the data have a column {PATH!r}, as that of include_path_column, which v1's partition_format needs"
_PINNED_EACH = 1000
"""Of so many texts one is kept: some in each MiB that Python's allocator asks the system for."""


class Table:
    """Reads one input.

    Args:
        plan: its record in `inputs.json`.
        schema_path: where its columns are frozen.
        warnings: gets those about the rows that are read.
    """

    def __init__(self, plan: dict[str, Any], schema_path: str, warnings: DataWarnings | None = None) -> None:
        self._plan = plan = completed(plan)
        self._folder = os.path.dirname(schema_path)
        self._sources: dict[str, list[grouped.Source]] = {}  # of groups, by folder
        self.path_keys = PathKeys(plan)
        self.format: TableFormat = format_of(plan["kind"])(plan, schema_path)
        self.format.warnings = DataWarnings() if warnings is None else warnings
        steps: list[dict[str, Any]] = plan["steps"]
        self.steps, self.tail = steps[: plan["tail"]], steps[plan["tail"] :]
        """Those on the rows of each piece, and those on the rows of all pieces, which are all here then."""
        self.keeping = [steps[number] for number in plan["keeping"]]
        """Those that keep every row."""
        self._pinned: tuple[int, list[Any]] = 0, []
        """Of the most rows so far, how many, and some of their texts. They hold the memory of all texts for those that
        come next, which the system would otherwise take back and fill with zeros for each mini-batch: a tenth of the
        time in which one of delimited text is read."""

    def names(self) -> list[str]:
        """The columns, before any step, as far as the first files tell.

        Raises:
            OSError, ValueError, ImportError: these can't be read.
        """
        return list(dict.fromkeys(self.format.names()))

    def read(self, pieces: list[Piece], places: dict[str, Place] | None = None) -> Any:
        """The rows of these pieces, in order, with an index from 0.

        Args:
            places: where the files are that are staged.

        Raises:
            OSError, ValueError, ImportError: they can't be read.
        """
        if places is not None:
            self.format.staged_at(places)
        if self.is_shuffled:
            with self.noting():  # who grouped the rows has warned of them
                frames = [frame for piece in pieces for frame in self._group(piece)]
            return self._together([*_filled(frames)]) if len(frames) > 1 else frames[0]
        frames = [self.piece(piece) for piece in pieces]
        frame = frames[0] if len(frames) == 1 else self._together([*_filled(frames)])
        for step in self.tail:
            if step["step"] != EXTRACT:
                frame = self._applied(frame, step, [0], pieces[0][0] if len(pieces) == 1 else "")
        self._pin(frame)
        return frame.reset_index(drop=True)

    def _pin(self, frame: Any) -> None:
        if len(frame) > self._pinned[0]:
            columns = (frame.iloc[::_PINNED_EACH, at] for at, dtype in enumerate(frame.dtypes) if dtype == "object")
            self._pinned = len(frame), [text for column in columns for text in column if type(text) is str]

    @contextmanager
    def noting(self) -> Iterator[DataWarnings]:
        """Warn nobody of what is read in here, but the one who takes what this yields."""
        outer = self.format.warnings
        self.format.warnings = inner = DataWarnings()
        try:
            yield inner
        finally:
            self.format.warnings = outer

    @property
    def is_shuffled(self) -> bool:
        """Return whether its rows were grouped by keys before they were cut."""
        return bool(self._plan.get("is_shuffled"))

    @property
    def extracts_first(self) -> bool:
        """Return whether the columns that come from paths are before those of the files."""
        return bool(self._plan["extracts_first"])

    @property
    def includes_path(self) -> bool:
        return bool(self._plan["read"]["include_path_column"])

    @property
    def has_dict_rows(self) -> bool:
        """Return whether run() gets a list of dicts."""
        return bool(self._plan["read"].get("rows_as") == "dicts")

    def objects(self, pieces: list[Piece], places: dict[str, Place] | None = None) -> list[dict[str, Any]]:
        """The rows of these pieces, in order, as the lines have them; raises as `read` does."""
        if places is not None:
            self.format.staged_at(places)
        rows: list[dict[str, Any]] = []
        for piece in pieces:
            with named(piece[0]):
                rows += self.format.objects(piece)
        return rows

    def _together(self, frames: list[Any]) -> Any:
        if self._plan["read"].get("has_exact_integers"):
            return together(frames)
        import pandas as pd

        return pd.concat(frames, ignore_index=True)

    def piece(self, piece: Piece) -> Any:
        """The rows of one piece as a DataFrame, after the steps on each piece."""
        path = piece[0]
        with named(path):
            frame = self.format.frame(piece)
        frame = self.dressed(frame, path, self.steps, salt_of(piece))
        if self.tail and any(step["step"] == EXTRACT for step in self.tail):
            frame = self._extracted(frame, path, in_front=False)
        return frame

    def dressed(self, frame: Any, path: str, steps: list[dict[str, Any]], salt: list[int]) -> Any:
        """Rows as they were read from a file, with the columns that come from its path, after these steps."""
        if self.extracts_first:
            frame = self._extracted(frame, path, in_front=True)
        if self.includes_path:
            if PATH in frame.columns:
                raise ValueError(PATH_TWICE)
            frame.insert(0, PATH, self._paths(path, frame.index))
        for step in steps:
            if step["step"] == EXTRACT:
                frame = self._extracted(frame, path, in_front=False)
            elif step["step"] not in COUNTING:  # the master has left out what they leave out
                frame = self._applied(frame, step, salt, path)
        return frame

    def _paths(self, path: str, index: Any) -> Any:
        import pandas as pd

        return as_texts(pd.Series([path] * len(index), index=index, dtype=object), self.format.text_dtype)

    def _extracted(self, frame: Any, path: str, *, in_front: bool) -> Any:
        """The rows of a file with columns of its path, in front of the others or behind them."""
        frame = self.path_keys.add_to(frame, path, in_front=in_front)
        self.warn_of_path(path)
        return frame

    def warn_of_path(self, path: str) -> None:
        """Warn of what stands in a path and became something else in its column."""
        if not self._plan["read"].get("has_exact_integers"):
            return
        for name, (text, became) in self.path_keys.changed(path).items():
            event = f"{text!r} in the path was read as {became}, since the first paths have numbers there"
            remedy = "extract_columns_from_partition_format after the read step keeps the texts"
            if name == self._plan["partition"]["date"]:
                event = f"{text!r} in the path is no date in 1678 to 2261, and was read as null"
                remedy = (
                    "on_mismatch: keep, an option of the read step, keeps it; so does a part for each of its numbers"
                )
            self.format.warnings.add(DataWarning("path_key", path, name, event, remedy, 1, "piece"))

    def _group(self, piece: Piece) -> Iterator[Any]:
        """The rows of a group, file by file; the shuffle has left out what the steps leave out."""
        for data, source, header in self.stored(piece):
            frame = self.format.frame_of_stored(data, source, header)
            yield self.dressed(frame, source, self.keeping, []).reset_index(drop=True)

    def stored(self, piece: Piece) -> Iterator[tuple[bytes, str, list[str | None]]]:
        """The stored records of a group, file by file, with the path and the header of their file."""
        path, start, end, *_ = piece
        folder = os.path.dirname(os.path.join(self._folder, path))
        if folder not in self._sources:
            with open(os.path.join(folder, grouped.SOURCES), encoding="utf-8") as file:
                self._sources[folder] = json.load(file)
        for number, data in grouped.read_group(os.path.join(folder, grouped.ROWS), start, end):
            if number == grouped.UNREAD:
                raise UnreadableFile(data.decode())
            yield data, *(self._sources[folder][number] if number >= 0 else ("", []))

    def _applied(self, frame: Any, step: dict[str, Any], salt: list[int], path: str) -> Any:
        if self.format.has_fixed_columns:  # otherwise rows elsewhere may have the column
            check_kept(frame, step)
        return self.warned(lambda values: apply_step(frame, step, salt, values), path)

    def warned(self, apply: Callable[[Values | None], Any], path: str) -> Any:
        """The rows of a file after `apply`; it gets the rules for odd values, of which a warning then tells."""
        values = Values("null", is_exact=False) if self._plan["read"].get("has_exact_integers") else None
        if values is not None:
            values.text_dtype = self.format.text_dtype
        rows = apply(values)
        for odd_value in values.found.values() if values is not None else ():
            self.format.warnings.add(warning_of(odd_value, path))
        return rows


def salt_of(piece: Piece) -> list[int]:
    """Return what distinguishes a piece from others, for random numbers."""
    salt = [zlib.crc32(os.fsencode(piece[0])), piece[1]]
    return [*salt, piece[5]] if piece[5:] and piece[5] else salt


def _filled(frames: list[Any]) -> Iterator[Any]:
    """Frames to be put together; empty ones only where all are, since they would spoil the types of the others."""
    full = [frame for frame in frames if len(frame)]
    yield from full or frames[:1]
