"""Delimited text: the headers of its files, and columns with types inferred from its first rows."""

import os
import re
from itertools import islice
from typing import Any, BinaryIO

from parallelrun_worker.tables.charsets import refusing
from parallelrun_worker.tables.conversion import convert
from parallelrun_worker.tables.line_ends import has_lone_returns, with_newlines
from parallelrun_worker.tables.parsers import read_delimited
from parallelrun_worker.tables.ranges import read_range, read_some, size_of
from parallelrun_worker.tables.records import Grammar, Record
from parallelrun_worker.tables.schema import Schema, header_names, infer_schema
from parallelrun_worker.tables.sniffing import Encoding, first_width
from parallelrun_worker.tables.splitting import split_records
from parallelrun_worker.tables.text import as_utf8, encoding_of, header_bytes, to_utf8
from parallelrun_worker.tables.text_format import SAMPLE_BYTES, Sampled, TextFormat

_MOST_HEADERS = 1000


class Format(TextFormat):
    """A record is a row."""

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self._headers: dict[str, tuple[Record, int]] = {}
        self._grammar = Grammar(self.options["delimiter"], multi_line=self.options["support_multi_line"])
        self._differs = self.options["header"] == "all_files_different_headers"
        """Each file has columns of its own."""
        self.needs_source = self._differs

    def split(self, data: bytes) -> list[bytes]:
        """See the base."""
        return split_records(data, self._grammar)

    def frame_of_stored(self, data: bytes, path: str, header: Record) -> Any:
        """See the base."""
        schema, empty_as_string = self.schema(), self.options["empty_as_string"]
        values = self.values()
        if not self._differs:
            frame = read_delimited(data, schema, self._grammar, empty_as_string=empty_as_string, values=values)
            self.warn(values, path)
            return frame
        names = header_names(header)
        own = Schema(names, [schema.kind_of(name) for name in names])
        frame = read_delimited(data, own, self._grammar, empty_as_string=empty_as_string, values=values)
        self.warn(values, path)
        return _united(frame, schema)

    def header(self, path: str, file: BinaryIO) -> tuple[Record, int]:
        """See the base."""
        mode = self.options["header"]
        if mode == "no_header" or (mode == "from_first_file" and path != self._first_with_text()):
            return [], 0
        if path not in self._headers:
            if len(self._headers) > _MOST_HEADERS:
                self._headers.clear()
            self._headers[path] = self._read_header(file)
        return self._headers[path]

    def _read_header(self, file: BinaryIO) -> tuple[Record, int]:
        encoding = encoding_of(file, self.options["encoding"])
        line, start = header_bytes(file, encoding, multi_line=self._grammar.multi_line)
        with refusing(encoding, start, line):
            text = to_utf8(line, encoding).decode()
        record, end = self._grammar.first(text, has_returns=encoding.has_returns)
        return record, start + (len(line) if end == len(text) else _bytes_of(text[:end], line, encoding))

    def lines(self, data: bytes, encoding: Encoding, file: BinaryIO) -> bytes:
        """See the base."""
        if not has_lone_returns(data):
            return data
        width = (
            None
            if encoding.has_returns
            else first_width(lambda size, at: read_some(file, size, at), encoding, self._grammar)
        )
        return with_newlines(data, self._grammar, width)

    def _first_with_text(self) -> str:
        known: str | None = self.plan.get("first_with_text")
        return known if known is not None else next((path for path in self.sample if os.stat(path).st_size > 3), "")

    def names(self) -> list[str]:
        """See the base."""
        names = list(self.inferred().names)
        if self._differs:
            for sampled in self.sampled():
                names += header_names(sampled.header)
        return names

    def inferred(self) -> Schema:
        """See the base."""
        wanted = self.options["sample_size"]
        if self._differs:
            return self._inferred_from_different_headers(wanted)
        names: list[str] | None = None
        rows: list[Record] = []
        for sampled in self.sampled():
            if names is None and sampled.header:
                names = header_names(sampled.header)
            rows += self._first_records(sampled, wanted - len(rows))
            if len(rows) >= wanted:
                break
        return infer_schema(names or [], rows, self.options)

    def _inferred_from_different_headers(self, wanted: int) -> Schema:
        names: list[str] = []
        rows: list[dict[str, str | None]] = []
        for sampled in self.sampled():
            records = self._first_records(sampled, wanted - len(rows))
            own = Schema(header_names(sampled.header), []).widened(max([0, *map(len, records)])).names
            names += [name for name in own if name not in names]
            rows += [dict(zip(own, row, strict=False)) for row in records]
            if len(rows) >= wanted:
                break
        return infer_schema(names, [[row.get(name) for name in names] for row in rows], self.options)

    def _first_records(self, sampled: Sampled, wanted: int) -> list[Record]:
        """The first records of a file, from its first `SAMPLE_BYTES`."""
        file, encoding = sampled.file, sampled.encoding
        start = max(sampled.start, encoding.bom)
        data = read_range(file, start, start + SAMPLE_BYTES)
        if start + len(data) < size_of(file):  # the last record is not whole
            last = data.rfind(encoding.newline)
            while last > 0 and last % encoding.width:
                last = data.rfind(encoding.newline, 0, last)
            data = data[: last + encoding.width] if last >= 0 else data
        text = self.lines(as_utf8(data, encoding), encoding, file).decode(errors="replace")
        return list(islice(self._grammar.records(text), max(0, wanted)))


def _bytes_of(text: str, line: bytes, encoding: Encoding) -> int:
    """How many bytes the beginning of a line takes that ends with a line end."""
    if encoding.width > 1:
        return len(text.encode(encoding.name))
    ends = re.finditer(rb"[\r\n]", line)
    return next(islice(ends, text.count("\r") + text.count("\n") - 1, None)).end()


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
