"""One input that is a table: from the pieces of a mini-batch to its DataFrame."""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parallelrun_worker.tables import delimited, grouped, json_lines, parquet
from parallelrun_worker.tables.conversion import convert
from parallelrun_worker.tables.path_keys import PathKeys
from parallelrun_worker.tables.records import Record
from parallelrun_worker.tables.schema import Schema, header_names
from parallelrun_worker.tables.splitting import split_records
from parallelrun_worker.tables.steps import Names, apply_step, check_kept, columns_left
from parallelrun_worker.tables.text import encoding_of, owned_bytes, to_utf8
from parallelrun_worker.tables.text_schema import TextSchema

Piece = tuple[str, int, int, bool, int]
"""Path, start, end, whether both are where a record begins, index of the first row (-1: unknown)."""

PATH = "Path"
KEEP_ROWS = ("keep_columns", "drop_columns", "convert_column_types", "extract_columns_from_partition_format")


class Table:
    """Reads one input.

    Args:
        plan: its record in `inputs.json`.
        schema_path: where its columns are frozen.
    """

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        self._plan = plan
        self._read: dict[str, Any] = plan["read"]
        self._folder = os.path.dirname(schema_path)
        self._sources: dict[str, list[grouped.Source]] = {}
        self.path_keys = PathKeys(plan)
        if plan["kind"] in ("delimited", "json_lines"):
            self._text_schema = TextSchema(plan, schema_path)
        names = [step["step"] for step in plan["steps"]]
        drops = [number for number, name in enumerate(names) if name in ("filter", "take_random_sample")]
        counted = [number for number, name in enumerate(names) if name in ("take", "skip")]
        self._is_whole = bool(drops) and bool(counted) and counted[-1] > drops[0]
        """A take or skip counts what only reading can tell, so all of the table is here."""
        self.tail = counted[0] if self._is_whole else len(names)
        """From which of the steps on the rows of all pieces are needed."""

    def names(self) -> list[str]:
        """The columns of a table that is not JSON lines, before any step, as far as its first files tell.

        Raises:
            OSError, ValueError, ImportError: these can't be read.
        """
        match self._plan["kind"]:
            case "delta_lake":
                found = self._read["columns"]
            case "parquet":
                found = [name for path in self._plan["sample"] for name in parquet.names_of(path)]
            case _:
                found = self._text_schema.names()
        return list(dict.fromkeys(found))

    def read(self, pieces: list[Piece]) -> Any:
        """The rows of these pieces, in order, with an index from 0.

        Raises:
            OSError, ValueError, ImportError: they can't be read.
        """
        import pandas as pd

        if self._plan.get("is_shuffled"):
            frames = [frame for piece in pieces for frame in self._group(piece)]
            return pd.concat([*_filled(frames)], ignore_index=True) if len(frames) > 1 else frames[0]
        frames = [self._piece(piece) for piece in pieces]
        frame = frames[0] if len(frames) == 1 else pd.concat([*_filled(frames)], ignore_index=True)
        for step in self._plan["steps"][self.tail :]:
            if step["step"] != "extract_columns_from_partition_format":
                frame = self._applied(frame, step, [0])
        return frame.reset_index(drop=True)

    def _piece(self, piece: Piece) -> Any:
        path = piece[0]
        with self.naming(path):
            frame = self._rows(piece)
        steps = self._plan["steps"]
        frame = self.dressed(frame, path, steps[: self.tail], salt_of(piece))
        if self._is_whole and any(step["step"].startswith("extract_") for step in steps[self.tail :]):
            frame = self.path_keys.add_to(frame, path, in_front=False)
        return frame

    @contextmanager
    def naming(self, path: str) -> Iterator[None]:
        """Name this file in the errors of what can't be read in here."""
        try:
            yield
        except UnicodeDecodeError as error:
            wrong = error.object[error.start : error.start + 4].hex(" ")
            raise ValueError(f"{path}: the text is not {self._read['encoding']} ({wrong}); set its encoding") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def dressed(self, frame: Any, path: str, steps: list[dict[str, Any]], salt: list[int]) -> Any:
        """Rows as they were read from a file, with the columns that come from its path, after these steps."""
        if self._plan["extracts_first"]:
            frame = self.path_keys.add_to(frame, path, in_front=True)
        if self._read["include_path_column"]:
            frame.insert(0, PATH, path)
            frame[PATH] = frame[PATH].astype(object)
        for step in steps:
            if step["step"] == "extract_columns_from_partition_format":
                frame = self.path_keys.add_to(frame, path, in_front=False)
            elif step["step"] not in ("take", "skip"):  # the master has left out what they leave out
                frame = self._applied(frame, step, salt)
        return frame

    def _group(self, piece: Piece) -> Iterator[Any]:
        """The rows of a group, file by file; the shuffle has left out what the steps leave out."""
        path, start, end, *_ = piece
        folder = os.path.dirname(os.path.join(self._folder, path))
        if folder not in self._sources:
            with open(os.path.join(folder, grouped.SOURCES), encoding="utf-8") as file:
                self._sources[folder] = json.load(file)
        steps = [step for step in self._plan["steps"] if step["step"] in KEEP_ROWS]
        for number, data in grouped.read_group(os.path.join(folder, grouped.ROWS), start, end):
            source, header = self._sources[folder][number] if number >= 0 else ("", [])
            if self._plan["kind"] in ("parquet", "delta_lake"):
                frame = self.frame_of_arrow(parquet.read_streams(data), source)
            else:
                frame = self.frame_of_text(data, header)
            yield self.dressed(frame, source, steps, []).reset_index(drop=True)

    def _applied(self, frame: Any, step: dict[str, Any], salt: list[int]) -> Any:
        if self._plan["kind"] != "json_lines":  # there, rows elsewhere may have the column
            check_kept(frame, step)
        return apply_step(frame, step, salt)

    def _rows(self, piece: Piece) -> Any:
        match self._plan["kind"]:
            case "delimited" | "json_lines":
                return self.frame_of_text(*self.text(piece))
            case _:
                return self.frame_of_arrow(self.arrow(piece), piece[0])

    def arrow(self, piece: Piece) -> Any:
        """Rows of a Parquet file as they are in it, in the columns that are needed."""
        columns = self._columns(piece[0]) if self._plan["kind"] == "parquet" else None
        return parquet.read_rows(*piece[:3], columns)

    def frame_of_arrow(self, table: Any, path: str) -> Any:
        """Such rows as a DataFrame."""
        if self._plan["kind"] != "delta_lake":
            return parquet.to_frame(table)
        whole = parquet.with_missing(table, self._read)
        return parquet.with_partitions(parquet.to_frame(whole), path, self._plan)

    def _columns(self, path: str) -> list[str] | None:
        """The columns of a Parquet file that the first steps leave; None: all."""
        names = parquet.names_of(path)
        left = Names(names)
        for step in self._plan["steps"]:
            if step["step"] not in ("keep_columns", "drop_columns"):
                break
            left.columns = columns_left(left, step)
        return None if len(left.columns) == len(names) or not left.columns else left.columns

    # Text

    def text(self, piece: Piece) -> tuple[bytes, Record]:
        """The records that a piece owns, in UTF-8, and the header of its file."""
        path, start, end, is_aligned, _ = piece
        with open(path, "rb") as file:
            encoding = encoding_of(file, self._read["encoding"])
            header, first = self._text_schema.header(path, file)
            data = owned_bytes(file, max(start, first), end, encoding, is_aligned=is_aligned)
        return to_utf8(data, encoding), header

    def records(self, data: bytes) -> list[bytes]:
        """The records of such text one by one, each fit to be put beside any other; dropped ones are left out."""
        if self._plan["kind"] == "delimited":
            return split_records(data, self._text_schema.grammar)
        lines = json_lines.read_lines(data, drop_invalid=self._read["invalid_lines"] == "drop")
        return [line + b"\n" for line, _ in lines]

    def frame_of_text(self, data: bytes, header: Record) -> Any:
        """Such text as a DataFrame."""
        schema = self._text_schema.schema()
        if self._plan["kind"] == "json_lines":
            objects = json_lines.read_objects(data, drop_invalid=self._read["invalid_lines"] == "drop")
            return json_lines.frame_of(objects, schema)
        options = {"empty_as_string": self._read["empty_as_string"]}
        if not self._text_schema.differs:
            return delimited.read_delimited(data, schema, self._text_schema.grammar, **options)
        names = header_names(header)
        own = Schema(names, [schema.kind_of(name) for name in names])
        return _united(delimited.read_delimited(data, own, self._text_schema.grammar, **options), schema)


def _united(frame: Any, schema: Schema) -> Any:
    """A file with a header of its own, with the columns of all."""
    import pandas as pd

    missing = {
        name: convert(pd.Series([None] * len(frame), dtype=object), kind)
        for name, kind in zip(schema.names, schema.kinds, strict=True)
        if name not in frame.columns
    }
    order = schema.names + [name for name in frame.columns if name not in schema.names]
    return pd.DataFrame({name: missing[name] if name in missing else frame[name] for name in order})


def salt_of(piece: Piece) -> list[int]:
    """What distinguishes a piece from others, for random numbers."""
    return [zlib.crc32(os.fsencode(piece[0])), piece[1]]


def _filled(frames: list[Any]) -> Iterator[Any]:
    """Frames to be put together; empty ones only where all are, since they would spoil the types of the others."""
    full = [frame for frame in frames if len(frame)]
    yield from full or frames[:1]
