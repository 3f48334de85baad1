"""A chunk of a table for the shuffle: the records that the table's steps leave, and their keys."""

import re
from functools import partial
from typing import Any

from parallelrun_worker.shuffle.keys import KeyTexts, joined, sortable
from parallelrun_worker.shuffle.sorting import Keyed
from parallelrun_worker.tables import grouped
from parallelrun_worker.tables.data_warnings import DataWarnings
from parallelrun_worker.tables.steps import EXTRACT, apply_step
from parallelrun_worker.tables.table import Table, salt_of
from parallelrun_worker.tables.table_format import Piece, Records, UnreadableFile, named


class Damaged(Exception):
    """A file of a table can't be read, as its mini-batch is to say; the message begins with its path."""


class ChunkReader:
    """Reads the pieces of one table, one after another.

    Args:
        plan: its record in `inputs.json`.
        schema_path: where its columns are frozen.
        warnings: gets those about all rows, those that the steps leave out among them.
    """

    def __init__(self, plan: dict[str, Any], schema_path: str, warnings: DataWarnings) -> None:
        self._plan = plan
        self._table = Table(plan, schema_path, warnings)
        self._texts = KeyTexts()
        self._has_rows = False
        self._rest = [step.get("rows", 0) for step in self._table.tail]
        """How many rows each `take` and `skip` still has to take or skip."""
        self._converts = any(step["step"] == "convert_column_types" for step in plan["steps"])
        self._needs_source = (
            self._table.format.needs_source or plan["partition"] is not None or plan["read"]["include_path_column"]
        )
        self.sources: list[grouped.Source] = []

    def read(self, piece: Piece) -> Keyed:
        """The records of one piece that the table's steps leave.

        Raises:
            Damaged: the file is not what the table says.
            OSError, ValueError, ImportError: it can't be read for another reason, or has no such column.
        """
        path = piece[0]
        try:
            with named(path):
                records = self._table.format.records(piece)
                frame = records.frame()
        except UnreadableFile as error:
            raise Damaged(str(error)) from error
        with named(path):
            frame = self._table.dressed(frame, path, self._table.steps, salt_of(piece))
            frame = self._counted(frame, path, piece)
            if not len(frame):
                return Keyed([], [], [])
            keys = joined([self._values(frame, name, path, records) for name in self._plan["keys"]])
            keys, stored = records.stored(frame.index.tolist(), keys)
            return Keyed(keys, [self._source(path, records.header)] * len(keys), stored)

    def _counted(self, frame: Any, path: str, piece: Piece) -> Any:
        """Apply the steps that count rows which are known only after reading, and the steps after them."""
        for number, step in enumerate(self._table.tail):
            if step["step"] == "take":
                frame = frame.iloc[: self._rest[number]]
                self._rest[number] -= len(frame)
            elif step["step"] == "skip":
                skipped = min(len(frame), self._rest[number])
                frame = frame.iloc[skipped:]
                self._rest[number] -= skipped
            elif step["step"] == EXTRACT:
                frame = self._table.path_keys.add_to(frame, path, in_front=False)
            else:
                frame = self._table.warned(partial(apply_step, frame, step, salt_of(piece)), path)
        return frame

    def _values(self, frame: Any, name: str, path: str, records: Records) -> list[bytes]:
        """The values of one key, one for each row."""
        partition = self._plan["partition"]
        if partition is not None and name in partition["names"]:
            parts = self._table.path_keys.values_of(path)
            return [sortable(None if parts is None else parts[name])] * len(frame)
        if name not in frame.columns:
            if not self._has_rows:
                columns = ", ".join(map(str, frame.columns))
                raise ValueError(f"there is no column {name!r} to group by; the table has {columns}{_hint(name, path)}")
            return [sortable(None)] * len(frame)
        self._has_rows = True
        values = self._texts.of_column(frame[name], name)
        missing = frame[name].isna()
        if missing.any() and not missing.all() and (frame[name].dtype.kind == "f" or self._converts):
            # Read them again by themselves: beside a null, whole numbers are floats and lose digits.
            places = [at for at, is_missing in enumerate(missing.tolist()) if not is_missing]
            labels = frame.index.tolist()
            with self._table.noting():  # all of them have been warned of
                full = self._table.dressed(records.frame([labels[at] for at in places]), path, self._table.keeping, [])
            for at, value in zip(places, self._texts.of_column(full[name], name), strict=True):
                values[at] = value
        return values

    def _source(self, path: str, header: list[str | None]) -> int:
        if not self._needs_source:
            return -1
        if not self.sources or self.sources[-1][0] != path:
            self.sources.append((path, header))
        return len(self.sources) - 1


def _hint(key: str, path: str) -> str:
    """Return what makes a column of a folder `key=value`; empty: the path has none."""
    folders = re.search(r"(?:[A-Za-z_]\w*=[^/]*/)+", path)
    if folders is None or f"/{key}=" not in f"/{folders[0]}":
        return ""
    partition_format = re.sub(r"(\w+)=[^/]*/", r"\1={\1}/", folders[0])
    return f"; its path has it: add the step extract_columns_from_partition_format: '{partition_format}*'"
