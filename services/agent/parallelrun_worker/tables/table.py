"""One input that is a table: from the pieces of a mini-batch to its DataFrame."""

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parallelrun_worker.tables import delimited, grouped, json_lines, parquet
from parallelrun_worker.tables.conversion import as_dates, convert
from parallelrun_worker.tables.inference import Kind, infer_kind
from parallelrun_worker.tables.records import Grammar, Record
from parallelrun_worker.tables.schema import Schema, freeze, frozen, header_names, infer_schema
from parallelrun_worker.tables.splitting import split_records
from parallelrun_worker.tables.steps import Names, apply_step, see_what_is_kept, selected
from parallelrun_worker.tables.text import encoding_of, header_bytes, owned_bytes, to_utf8

Piece = tuple[str, int, int, bool, int]
"""Path, start, end, whether both are where a record begins, index of the first row (-1: unknown)."""

_SAMPLE_BYTES = 1 << 20
_SAMPLE_OBJECTS = 200
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
        self._schema_path = schema_path
        self._schema: Schema | None = None
        self._headers: dict[str, tuple[Record, int]] = {}
        self._key_kinds: dict[str, Kind] | None = None
        self._sources: dict[str, list[grouped.Source]] = {}
        if plan["kind"] == "delimited":
            self._grammar = Grammar(self._read["delimiter"], multi_line=self._read["support_multi_line"])
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
                found = list(self._inferred().names)
                if self._read["header"] == "all_files_different_headers":
                    found += [name for path in self._plan["sample"] for name in header_names(self._header_of(path))]
        return list(dict.fromkeys(found))

    def _header_of(self, path: str) -> Record:
        with open(path, "rb") as file:
            return self._header(path, file)[0]

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
        with self.told(path):
            frame = self._rows(piece)
        steps = self._plan["steps"]
        frame = self.dressed(frame, path, steps[: self.tail], salt_of(piece))
        if self._is_whole and any(step["step"].startswith("extract_") for step in steps[self.tail :]):
            frame = self.with_keys(frame, path, in_front=False)
        return frame

    @contextmanager
    def told(self, path: str) -> Iterator[None]:
        """Whatever can't be read in here is told with the file that it is in."""
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
            frame = self.with_keys(frame, path, in_front=True)
        if self._read["include_path_column"]:
            frame.insert(0, PATH, path)
            frame[PATH] = frame[PATH].astype(object)
        for step in steps:
            if step["step"] == "extract_columns_from_partition_format":
                frame = self.with_keys(frame, path, in_front=False)
            elif step["step"] not in ("take", "skip"):  # the master has left out what they leave out
                frame = self._applied(frame, step, salt)
        return frame

    def _group(self, piece: Piece) -> Iterator[Any]:
        """The rows of a group, file by file; the shuffle has left out what the steps leave out."""
        path, start, end, *_ = piece
        folder = os.path.dirname(os.path.join(os.path.dirname(self._schema_path), path))
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
            see_what_is_kept(frame, step)
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
            if step["step"] == "keep_columns":
                left.columns = selected(left, step["columns"])
            elif step["step"] == "drop_columns":
                dropped = selected(left, step["columns"])
                left.columns = [name for name in left.columns if name not in dropped]
            else:
                break
        return None if len(left.columns) == len(names) or not left.columns else left.columns

    # Text

    def text(self, piece: Piece) -> tuple[bytes, Record]:
        """The records that a piece owns, in UTF-8, and the header of its file."""
        path, start, end, is_aligned, _ = piece
        with open(path, "rb") as file:
            encoding = encoding_of(file, self._read["encoding"])
            header, behind = self._header(path, file) if self._plan["kind"] == "delimited" else ([], 0)
            data = owned_bytes(file, max(start, behind), end, encoding, is_aligned=is_aligned)
        return to_utf8(data, encoding), header

    def records(self, data: bytes) -> list[bytes]:
        """The records of such text one by one, each fit to stand beside any other; what is dropped is not there."""
        if self._plan["kind"] == "delimited":
            return split_records(data, self._grammar)
        lines = json_lines.read_lines(data, drop_invalid=self._read["invalid_lines"] == "drop")
        return [line + b"\n" for line, _ in lines]

    def frame_of_text(self, data: bytes, header: Record) -> Any:
        """Such text as a DataFrame."""
        schema = self._schema_of_text()
        if self._plan["kind"] == "json_lines":
            return json_lines.frame_of(self._objects(data), schema)
        differs = self._read["header"] == "all_files_different_headers"
        own = self._own(schema, header_names(header)) if differs else schema
        empty_as_string = self._read["empty_as_string"]
        frame = delimited.read_delimited(data, own, self._grammar, empty_as_string=empty_as_string)
        return self._united(frame) if differs else frame

    def _own(self, schema: Schema, names: list[str]) -> Schema:
        return Schema(names, [schema.kind_of(name) for name in names])

    def _united(self, frame: Any) -> Any:
        """A file with a header of its own, with the columns of all."""
        import pandas as pd

        schema = self._schema_of_text()
        missing = {
            name: convert(pd.Series([None] * len(frame), dtype=object), kind)
            for name, kind in zip(schema.names, schema.kinds, strict=True)
            if name not in frame.columns
        }
        order = schema.names + [name for name in frame.columns if name not in schema.names]
        return pd.DataFrame({name: missing[name] if name in missing else frame[name] for name in order})

    def _header(self, path: str, file: Any) -> tuple[Record, int]:
        """The header of a file and where its rows begin; nothing and 0 when it has none."""
        mode = self._read["header"]
        if mode == "no_header" or (mode == "from_first_file" and path != self._first_with_text()):
            return [], 0
        if path not in self._headers:
            if len(self._headers) > 1000:
                self._headers.clear()
            self._headers[path] = self._read_header(file)
        return self._headers[path]

    def _read_header(self, file: Any) -> tuple[Record, int]:
        encoding = encoding_of(file, self._read["encoding"])
        line, behind = header_bytes(file, encoding, multi_line=self._grammar.multi_line)
        return next(self._grammar.records(to_utf8(line, encoding).decode()), []), behind

    def _first_with_text(self) -> str:
        return next((path for path in self._plan["sample"] if os.stat(path).st_size > 3), "")

    def _schema_of_text(self) -> Schema:
        if self._schema is None:
            self._schema = frozen(self._schema_path) or freeze(self._schema_path, self._inferred())
        return self._schema

    def _inferred(self) -> Schema:
        if self._plan["kind"] == "json_lines":
            return json_lines.infer_objects(list(self._first_objects()))
        wanted = self._read["sample_size"]
        if self._read["header"] == "all_files_different_headers":
            return self._inferred_from_different_headers(wanted)
        names: list[str] | None = None
        rows: list[Record] = []
        for path in self._plan["sample"]:
            with open(path, "rb") as file:
                header, behind = self._header(path, file)
                if names is None and header:
                    names = header_names(header)
                rows += self._first_records(file, behind, wanted - len(rows))
            if len(rows) >= wanted:
                break
        return infer_schema(names or [], rows, self._read)

    def _inferred_from_different_headers(self, wanted: int) -> Schema:
        names: list[str] = []
        rows: list[dict[str, str | None]] = []
        for path in self._plan["sample"]:
            with open(path, "rb") as file:
                header, behind = self._header(path, file)
                found = self._first_records(file, behind, wanted - len(rows))
                own = Schema(header_names(header), []).widened(max([0, *map(len, found)])).names
                names += [name for name in own if name not in names]
                rows += [dict(zip(own, row, strict=False)) for row in found]
            if len(rows) >= wanted:
                break
        return infer_schema(names, [[row.get(name) for name in names] for row in rows], self._read)

    def _first_records(self, file: Any, start: int, wanted: int) -> list[Record]:
        """The first records of a file, from at most so many bytes."""
        encoding = encoding_of(file, self._read["encoding"])
        size = os.fstat(file.fileno()).st_size
        start = max(start, encoding.bom)
        data = os.pread(file.fileno(), _SAMPLE_BYTES, start)
        if start + len(data) < size:  # the last record is not whole
            last = data.rfind(encoding.newline)
            while last > 0 and last % encoding.width:
                last = data.rfind(encoding.newline, 0, last)
            data = data[: last + encoding.width] if last >= 0 else data
        text = to_utf8(data, encoding).decode(errors="replace")
        found: list[Record] = []
        for record in self._grammar.records(text):
            if len(found) >= wanted:
                break
            found.append(record)
        return found

    def _objects(self, data: bytes) -> list[dict[str, Any]]:
        return json_lines.read_objects(data, drop_invalid=self._read["invalid_lines"] == "drop")

    def _first_objects(self) -> Iterator[dict[str, Any]]:
        wanted = _SAMPLE_OBJECTS
        for path in self._plan["sample"]:
            found = self._objects(self.text((path, 0, _SAMPLE_BYTES, False, -1))[0])[:wanted]
            yield from found
            wanted -= len(found)
            if wanted <= 0:
                return

    # Keys in paths

    def with_keys(self, frame: Any, path: str, *, in_front: bool) -> Any:
        """The frame with the columns that the path's parts become."""
        partition = self._plan["partition"]
        values = self.key_values(path)
        if values is None and in_front:
            raise ValueError("the path doesn't fit the partition format")
        shown = in_front or self._read["include_path_column"] or bool(self._plan["keys"])
        names = sorted(partition["names"], key=lambda name: name == partition["date"])  # the date comes last
        columns = {}
        for name in names:
            if name in frame.columns:
                raise ValueError(f"the partition format names the column {name!r}, which the data have as well")
            value = values[name] if values is not None and shown else None
            columns[name] = self._key_column(name, value, frame.index, in_front=in_front)
        order = [*columns, *frame.columns] if in_front else [*frame.columns, *columns]
        return type(frame)(
            {name: columns[name] if name in columns else frame[name] for name in order}, index=frame.index
        )

    def _key_column(self, name: str, value: str | None, index: Any, *, in_front: bool) -> Any:
        import pandas as pd

        column = pd.Series([value] * len(index), index=index, dtype=object)
        if name == self._plan["partition"]["date"]:
            return as_dates(column, {"formats": [self._plan["partition"]["date_format"]]})
        return convert(column, self._kinds_of_keys()[name]) if in_front else column

    def _kinds_of_keys(self) -> dict[str, Kind]:
        """What the parts of the paths are, where the format stands before the step that reads (reference §4.4)."""
        if self._key_kinds is None:
            found = [values for path in self._plan["sample"] if (values := self.key_values(path)) is not None]
            names = self._plan["partition"]["names"]
            self._key_kinds = {name: infer_kind([values[name] for values in found]) for name in names}
        return self._key_kinds

    def keys(self, values: list[str | None]) -> dict[str, Any]:
        """The values of the partition keys: texts, but numbers where the format stands before the step that reads.

        A text that turns up among numbers stays a text. In the column it is null (reference §4.3), but here null would
        make the groups of two such texts look alike.
        """
        found: dict[str, Any] = {}
        for name, value in zip(self._plan["keys"], values, strict=False):
            partition = self._plan["partition"] if self._plan["extracts_first"] else {"names": [], "date": ""}
            if value is None or name not in partition["names"] or name == partition["date"]:
                found[name] = value
            else:
                kind = self._kinds_of_keys()[name]["kind"]
                found[name] = _number_or_text(value) if kind == "int" else value
        return found

    def key_values(self, path: str) -> dict[str, str] | None:
        """The parts of a path that have names; None when it doesn't fit the partition format."""
        partition = self._plan["partition"]
        root = self._plan["root"].rstrip("/") + "/"
        below = path[len(root) :] if path.startswith(root) else path
        found = re.search(partition["pattern"], below, re.DOTALL)
        if found is None and partition["starts_above"]:
            found = re.search(partition["pattern"], path, re.DOTALL)
        return dict(zip(partition["names"], found.groups(), strict=True)) if found else None


def _number_or_text(value: str) -> int | str:
    try:
        return int(value)
    except ValueError:
        return value


def salt_of(piece: Piece) -> list[int]:
    """What tells a piece from others, for random numbers."""
    return [zlib.crc32(os.fsencode(piece[0])), piece[1]]


def _filled(frames: list[Any]) -> Iterator[Any]:
    """Frames to be put together; empty ones only where all are, since they would spoil the types of the others."""
    full = [frame for frame in frames if len(frame)]
    yield from full or frames[:1]
