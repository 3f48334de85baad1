"""The schema of a text table: the headers of its files, and columns with types inferred from its first rows."""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from parallelrun_worker.tables import json_lines
from parallelrun_worker.tables.records import Grammar, Record
from parallelrun_worker.tables.schema import Schema, freeze, frozen, header_names, infer_schema
from parallelrun_worker.tables.text import encoding_of, header_bytes, owned_bytes, to_utf8

_SAMPLE_BYTES = 1 << 20
_SAMPLE_OBJECTS = 200
_MOST_HEADERS = 1000


class TextSchema:
    """That of one input of delimited text or of JSON lines.

    Args:
        plan: its record in `inputs.json`.
        path: where its columns are frozen.
    """

    def __init__(self, plan: dict[str, Any], path: str) -> None:
        self._sample: list[str] = plan["sample"]
        self._read: dict[str, Any] = plan["read"]
        self._path = path
        self._frozen: Schema | None = None
        self._headers: dict[str, tuple[Record, int]] = {}
        self._is_delimited = plan["kind"] == "delimited"
        if self._is_delimited:
            self.grammar = Grammar(self._read["delimiter"], multi_line=self._read["support_multi_line"])
        self.differs = self._is_delimited and self._read["header"] == "all_files_different_headers"
        """Each file has columns of its own."""

    def header(self, path: str, file: BinaryIO) -> tuple[Record, int]:
        """The header of a file and where its rows begin; nothing and 0 when it has none."""
        mode = self._read["header"] if self._is_delimited else "no_header"
        if mode == "no_header" or (mode == "from_first_file" and path != self._first_with_text()):
            return [], 0
        if path not in self._headers:
            if len(self._headers) > _MOST_HEADERS:
                self._headers.clear()
            self._headers[path] = self._read_header(file)
        return self._headers[path]

    def _read_header(self, file: BinaryIO) -> tuple[Record, int]:
        encoding = encoding_of(file, self._read["encoding"])
        line, end = header_bytes(file, encoding, multi_line=self.grammar.multi_line)
        return next(self.grammar.records(to_utf8(line, encoding).decode()), []), end

    def _first_with_text(self) -> str:
        return next((path for path in self._sample if os.stat(path).st_size > 3), "")

    def names(self) -> list[str]:
        """The columns, as far as the first files tell, in their order; a name may be there twice.

        Raises:
            OSError, ValueError: these files can't be read.
        """
        found = list(self.inferred().names)
        if self.differs:
            for path in self._sample:
                with open(path, "rb") as file:
                    found += header_names(self.header(path, file)[0])
        return found

    def schema(self) -> Schema:
        """The same for all workers, and for as long as the job runs."""
        if self._frozen is None:
            self._frozen = frozen(self._path) or freeze(self._path, self.inferred())
        return self._frozen

    def inferred(self) -> Schema:
        """What the first rows look like."""
        if not self._is_delimited:
            return json_lines.infer_objects(list(self._first_objects()))
        wanted = self._read["sample_size"]
        if self.differs:
            return self._inferred_from_different_headers(wanted)
        names: list[str] | None = None
        rows: list[Record] = []
        for path in self._sample:
            with open(path, "rb") as file:
                header, start = self.header(path, file)
                if names is None and header:
                    names = header_names(header)
                rows += self._first_records(file, start, wanted - len(rows))
            if len(rows) >= wanted:
                break
        return infer_schema(names or [], rows, self._read)

    def _inferred_from_different_headers(self, wanted: int) -> Schema:
        names: list[str] = []
        rows: list[dict[str, str | None]] = []
        for path in self._sample:
            with open(path, "rb") as file:
                header, start = self.header(path, file)
                found = self._first_records(file, start, wanted - len(rows))
                own = Schema(header_names(header), []).widened(max([0, *map(len, found)])).names
                names += [name for name in own if name not in names]
                rows += [dict(zip(own, row, strict=False)) for row in found]
            if len(rows) >= wanted:
                break
        return infer_schema(names, [[row.get(name) for name in names] for row in rows], self._read)

    def _first_records(self, file: BinaryIO, start: int, wanted: int) -> list[Record]:
        """The first records of a file, from its first `_SAMPLE_BYTES`."""
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
        for record in self.grammar.records(text):
            if len(found) >= wanted:
                break
            found.append(record)
        return found

    def _first_objects(self) -> Iterator[dict[str, Any]]:
        wanted = _SAMPLE_OBJECTS
        for path in self._sample:
            with open(path, "rb") as file:
                encoding = encoding_of(file, self._read["encoding"])
                data = to_utf8(owned_bytes(file, 0, _SAMPLE_BYTES, encoding, is_aligned=False), encoding)
            found = json_lines.read_objects(data, drop_invalid=self._read["invalid_lines"] == "drop")[:wanted]
            yield from found
            wanted -= len(found)
            if wanted <= 0:
                return
