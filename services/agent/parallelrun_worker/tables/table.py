"""One input that is a table: from the pieces of a mini-batch to its DataFrame."""

import os
import re
import zlib
from collections.abc import Iterator
from typing import Any

from parallelrun_worker.tables import delimited, json_lines, parquet
from parallelrun_worker.tables.conversion import as_dates, convert
from parallelrun_worker.tables.inference import Kind, infer_kind
from parallelrun_worker.tables.records import Grammar, Record
from parallelrun_worker.tables.schema import Schema, freeze, frozen, header_names, infer_schema
from parallelrun_worker.tables.steps import apply_step, selected
from parallelrun_worker.tables.text import encoding_of, header_bytes, owned_bytes, to_utf8

Piece = tuple[str, int, int, bool, int]
"""Path, start, end, whether both are where a record begins, index of the first row (-1: unknown)."""

_SAMPLE_BYTES = 1 << 20
_SAMPLE_OBJECTS = 200
_PATH = "Path"


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
        if plan["kind"] == "delimited":
            self._grammar = Grammar(self._read["delimiter"], multi_line=self._read["support_multi_line"])
        names = [step["step"] for step in plan["steps"]]
        drops = [number for number, name in enumerate(names) if name in ("filter", "take_random_sample")]
        counted = [number for number, name in enumerate(names) if name in ("take", "skip")]
        self._is_whole = bool(drops) and bool(counted) and counted[-1] > drops[0]
        """A take or skip counts what only reading can tell, so all of the table is here."""
        self._tail = counted[0] if self._is_whole else len(names)

    def read(self, pieces: list[Piece]) -> Any:
        """The rows of these pieces, in order, with an index from 0.

        Raises:
            OSError, ValueError, ImportError: they can't be read.
        """
        import pandas as pd

        frames = [self._piece(piece) for piece in pieces]
        frame = frames[0] if len(frames) == 1 else pd.concat([*_filled(frames)], ignore_index=True)
        for step in self._plan["steps"][self._tail :]:
            if step["step"] != "extract_columns_from_partition_format":
                frame = apply_step(frame, step, [0])
        return frame.reset_index(drop=True)

    def _piece(self, piece: Piece) -> Any:
        path, start, *_ = piece
        try:
            frame = self._rows(piece)
        except UnicodeDecodeError as error:
            wrong = error.object[error.start : error.start + 4].hex(" ")
            raise ValueError(f"{path}: the text is not {self._read['encoding']} ({wrong}); set its encoding") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if self._plan["extracts_first"]:
            frame = self._with_keys(frame, path, in_front=True)
        if self._read["include_path_column"]:
            frame.insert(0, _PATH, path)
            frame[_PATH] = frame[_PATH].astype(object)
        salt = [zlib.crc32(os.fsencode(path)), start]
        for step in self._plan["steps"][: self._tail]:
            if step["step"] == "extract_columns_from_partition_format":
                frame = self._with_keys(frame, path, in_front=False)
            elif step["step"] not in ("take", "skip"):  # the master has left out what they leave out
                frame = apply_step(frame, step, salt)
        if self._is_whole and any(step["step"].startswith("extract_") for step in self._plan["steps"][self._tail :]):
            frame = self._with_keys(frame, path, in_front=False)
        return frame

    def _rows(self, piece: Piece) -> Any:
        match self._plan["kind"]:
            case "delimited":
                return self._delimited(piece)
            case "json_lines":
                return self._json_lines(piece)
            case "delta_lake":
                return parquet.with_partitions(parquet.read_rows(*piece[:3], None), piece[0], self._plan)
            case _:
                return parquet.read_rows(*piece[:3], self._columns(piece[0]))

    def _columns(self, path: str) -> list[str] | None:
        """The columns of a Parquet file that the first steps leave; None: all."""
        names = parquet.names_of(path)
        wanted = names

        class Names:
            columns = names

        for step in self._plan["steps"]:
            if step["step"] == "keep_columns":
                Names.columns = wanted = selected(Names, step["columns"])
            elif step["step"] == "drop_columns":
                dropped = selected(Names, step["columns"])
                Names.columns = wanted = [name for name in wanted if name not in dropped]
            else:
                break
        return None if len(wanted) == len(names) or not wanted else wanted

    # Text

    def _delimited(self, piece: Piece) -> Any:
        path, start, end, is_aligned, _ = piece
        schema = self._schema_of_text()
        with open(path, "rb") as file:
            encoding = encoding_of(file, self._read["encoding"])
            header, behind = self._header(path, file)
            start = max(start, behind)
            data = owned_bytes(file, start, end, encoding, is_aligned=is_aligned)
        if self._read["header"] == "all_files_different_headers":
            schema = self._own(schema, header_names(header))
        frame = delimited.read_delimited(
            to_utf8(data, encoding), schema, self._grammar, empty_as_string=self._read["empty_as_string"]
        )
        if self._read["header"] != "all_files_different_headers":
            return frame
        return self._united(frame)

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

    def _json_lines(self, piece: Piece) -> Any:
        schema = self._schema_of_text()
        return json_lines.frame_of(self._objects(piece), schema)

    def _objects(self, piece: Piece) -> list[dict[str, Any]]:
        path, start, end, is_aligned, _ = piece
        with open(path, "rb") as file:
            encoding = encoding_of(file, self._read["encoding"])
            data = owned_bytes(file, start, end, encoding, is_aligned=is_aligned)
        return json_lines.read_objects(to_utf8(data, encoding), drop_invalid=self._read["invalid_lines"] == "drop")

    def _first_objects(self) -> Iterator[dict[str, Any]]:
        wanted = _SAMPLE_OBJECTS
        for path in self._plan["sample"]:
            found = self._objects((path, 0, _SAMPLE_BYTES, False, -1))[:wanted]
            yield from found
            wanted -= len(found)
            if wanted <= 0:
                return

    # Keys in paths

    def _with_keys(self, frame: Any, path: str, *, in_front: bool) -> Any:
        """The frame with the columns that the path's parts become."""
        partition = self._plan["partition"]
        values = self._key_values(path)
        if values is None and in_front:
            raise ValueError("the path doesn't fit the partition format")
        shown = in_front or self._read["include_path_column"] or bool(self._plan["keys"])
        names = sorted(partition["names"], key=lambda name: name == partition["date"])  # the date comes last
        columns = {}
        for name in names:
            if name in frame.columns:
                raise ValueError(f"the partition format names the column {name!r}, which the data have as well")
            value = values[name] if values is not None and shown else None
            columns[name] = self._key_column(name, value, len(frame), in_front=in_front)
        order = [*columns, *frame.columns] if in_front else [*frame.columns, *columns]
        return type(frame)(
            {name: columns[name] if name in columns else frame[name] for name in order}, index=frame.index
        )

    def _key_column(self, name: str, value: str | None, rows: int, *, in_front: bool) -> Any:
        import pandas as pd

        column = pd.Series([value] * rows, dtype=object)
        if name == self._plan["partition"]["date"]:
            return as_dates(column, {"formats": [self._plan["partition"]["date_format"]]})
        return convert(column, self._kinds_of_keys()[name]) if in_front else column

    def _kinds_of_keys(self) -> dict[str, Kind]:
        """What the parts of the paths are, where the format stands before the step that reads (reference §4.4)."""
        if self._key_kinds is None:
            found = [values for path in self._plan["sample"] if (values := self._key_values(path)) is not None]
            names = self._plan["partition"]["names"]
            self._key_kinds = {name: infer_kind([values[name] for values in found]) for name in names}
        return self._key_kinds

    def keys(self, values: list[str | None]) -> dict[str, Any]:
        """The values of the partition keys: texts, but numbers where the format stands before the step that reads."""
        found: dict[str, Any] = {}
        for name, value in zip(self._plan["keys"], values, strict=False):
            if value is None or not self._plan["extracts_first"] or name == self._plan["partition"]["date"]:
                found[name] = value
            else:
                kind = self._kinds_of_keys()[name]["kind"]
                found[name] = int(value) if kind == "int" else value
        return found

    def _key_values(self, path: str) -> dict[str, str] | None:
        partition = self._plan["partition"]
        root = self._plan["root"].rstrip("/") + "/"
        below = path[len(root) :] if path.startswith(root) else path
        found = re.search(partition["pattern"], below, re.DOTALL)
        if found is None and partition["starts_above"]:
            found = re.search(partition["pattern"], path, re.DOTALL)
        return dict(zip(partition["names"], found.groups(), strict=True)) if found else None


def _filled(frames: list[Any]) -> Iterator[Any]:
    """Frames to be put together; empty ones only where all are, since they would spoil the types of the others."""
    full = [frame for frame in frames if len(frame)]
    yield from full or frames[:1]
