"""Some rows of a Parquet row group, of whose columns only the pages are read that have any of them.

A row group is a unit for pyarrow: who wants its last rows decodes all of it. A million rows are one, as pandas writes
them, and many mini-batches. Here, each column becomes a Parquet file of its own in memory, with the pages that are
needed and a footer that tells of these, and pyarrow reads that one. Where the pages of a column begin is in the headers
of the pages, which are in Apache Thrift's compact protocol, as the footer is.

The source of the structures and of their numbers is `parquet.thrift` of Apache Parquet.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

from parallelrun_worker.tables.compact_protocol import BINARY, I32, I64, LIST, STRUCT, Decoder, encode
from parallelrun_worker.tables.parquet_footer import check_footer

_MARK: Final = b"PAR1"
_ARROW_SCHEMA: Final = b"ARROW:schema"
_MANY_COLUMNS: Final = 100
_WORTH_BYTES: Final = 64 << 10
"""Of a column, where there are many: each costs a third of a millisecond, whatever it has."""
_HEADER_BYTES: Final = 512
_MOST_HEADER_BYTES: Final = 8 << 20
"""It has the smallest and the largest value of the page, which can be long texts."""
_DATA_PAGE: Final = 0
_DICTIONARY_PAGE: Final = 2
_DATA_PAGE_V2: Final = 3
_CODECS: Final = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}
"""LZ4 is two, of which pyarrow doesn't tell which."""
_ENCODINGS: Final = {
    "PLAIN": 0, "PLAIN_DICTIONARY": 2, "RLE": 3, "BIT_PACKED": 4, "DELTA_BINARY_PACKED": 5,
    "DELTA_LENGTH_BYTE_ARRAY": 6, "DELTA_BYTE_ARRAY": 7, "RLE_DICTIONARY": 8, "BYTE_STREAM_SPLIT": 9,
}  # fmt: skip
_BY_DICTIONARY: Final = (_ENCODINGS["PLAIN_DICTIONARY"], _ENCODINGS["RLE_DICTIONARY"])
_REPEATED: Final = 2
_ROOT: Final = encode([(4, BINARY, b"schema"), (5, I32, 1)])


class _Column(NamedTuple):
    """A column that is not nested, as the schema of a file has it."""

    number: int
    """Among the columns of a row group, to which each part of a nested column counts."""
    physical_type: int
    element: bytes
    """The element of the schema, as it is in the file."""


class _Schema(NamedTuple):
    version: int
    """The version of the format."""
    columns: dict[str, _Column]
    """Columns that are not nested, by name."""


class _Page(NamedTuple):
    first_row: int
    row_count: int
    start: int
    end: int
    """Both in the file."""
    needs_dictionary: bool


class _Chunk:
    """The pages of a column in a row group, looked for as far as they are asked for.

    Args:
        about: its `pyarrow.parquet.ColumnChunkMetaData`.
    """

    def __init__(self, about: Any) -> None:
        self.about = about
        begin = about.data_page_offset
        if about.has_dictionary_page and 0 < about.dictionary_page_offset < begin:
            begin = about.dictionary_page_offset
        self._at, self._end = begin, begin + about.total_compressed_size
        self._row_count = 0
        self._pages: list[_Page] = []
        self.dictionary = (0, 0)
        """Where its page begins and ends, if there is one."""

    def pages(self, file: BinaryIO, rows: range) -> list[_Page]:
        """The pages that have any of these rows.

        Raises:
            ValueError, LookupError: they are not where they ought to be.
        """
        while self._row_count < rows.stop:
            self._find_next(file)
        return [
            page for page in self._pages if page.first_row < rows.stop and rows.start < page.first_row + page.row_count
        ]

    def _find_next(self, file: BinaryIO) -> None:
        header, start = _header_of(file, self._at)
        kind, end = header[1], start + header[3]
        if not start <= end <= self._end:
            raise ValueError("a page ends outside its column")
        if kind == _DICTIONARY_PAGE:
            self.dictionary = (self._at, end)
        elif kind in (_DATA_PAGE, _DATA_PAGE_V2):
            about = header[5 if kind == _DATA_PAGE else 8]
            row_count, encoding = about[1], about[2 if kind == _DATA_PAGE else 4]
            if row_count < 0:
                raise ValueError("a page has less than no rows")
            self._pages.append(_Page(self._row_count, row_count, self._at, end, encoding in _BY_DICTIONARY))
            self._row_count += row_count
        self._at = end


def _header_of(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """The header of a page, and where what follows it begins."""
    length = _HEADER_BYTES
    while True:
        file.seek(at)
        decoder = Decoder(file.read(length))
        try:
            return decoder.struct(), at + decoder.at
        except ValueError:
            length *= 16
            if length > _MOST_HEADER_BYTES:
                raise


class RowGroup:
    """A row group, for the mini-batches that have some of its rows each.

    Args:
        parquet: its file, as a `pyarrow.parquet.ParquetFile`.
        number: which one it is.
        schema: version and columns of the file.
    """

    def __init__(self, parquet: Any, number: int, schema: _Schema) -> None:
        self._metadata = parquet.metadata
        self._arrow_schema = parquet.schema_arrow
        self._schema = schema
        about = self._metadata.row_group(number)
        chunks = {name: about.column(column.number) for name, column in schema.columns.items()}
        is_wide = about.num_columns > _MANY_COLUMNS
        self._chunks = {
            name: _Chunk(chunk)
            for name, chunk in chunks.items()
            if chunk.compression in _CODECS and (not is_wide or chunk.total_compressed_size > _WORTH_BYTES)
        }

    @classmethod
    def of(cls, file: BinaryIO, parquet: Any, number: int) -> RowGroup:
        """The row group of a file, which is open twice.

        Raises:
            OSError, ValueError, LookupError: the footer is damaged, or not what was expected.
        """
        check_footer(parquet.metadata, [number])
        return cls(parquet, number, _schema_of(file))

    def read(self, file: BinaryIO, rows: range, columns: Sequence[str], repeating: Collection[str] = ()) -> Any:
        """Read rows as an Arrow table of those columns that can be read by their pages; nested ones can't.

        Args:
            rows: counted in the row group; at least one.
            repeating: columns that become dictionaries.

        Raises:
            OSError, ValueError, LookupError: a page is damaged, or not what was expected.
        """
        import pyarrow as pa

        tables = [self._column(file, name, rows, name in repeating) for name in columns if name in self._chunks]
        schema = pa.schema([table.schema.field(0) for table in tables])
        return pa.Table.from_arrays([table.column(0) for table in tables], schema=schema)

    def _column(self, file: BinaryIO, name: str, rows: range, is_repeating: bool) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        chunk = self._chunks[name]
        pages = chunk.pages(file, rows)
        row_count = pages[-1].first_row + pages[-1].row_count - pages[0].first_row
        dictionary = _bytes(file, *chunk.dictionary) if any(page.needs_dictionary for page in pages) else b""
        content = _MARK + dictionary + _bytes(file, pages[0].start, pages[-1].end)
        footer = self._footer(name, row_count, len(dictionary), len(content))
        source = pa.BufferReader(content + footer + len(footer).to_bytes(4, "little") + _MARK)
        dictionaries = [name] if is_repeating else None
        with pq.ParquetFile(source, read_dictionary=dictionaries, page_checksum_verification=True) as column:
            table = column.read(use_threads=False)
        if table.num_rows != row_count:
            raise ValueError(f"the pages have {table.num_rows} rows, not {row_count}")
        return table.slice(_rows_before(rows, pages), len(rows))

    def _footer(self, name: str, row_count: int, dictionary_bytes: int, end: int) -> bytes:
        """The footer of a file of one column, whose pages are at its beginning."""
        column = self._schema.columns[name]
        row_group = _row_group(column, self._chunks[name].about, row_count, dictionary_bytes, end)
        fields: list[tuple[int, int, Any]] = [
            (1, I32, self._schema.version),
            (2, LIST, (STRUCT, [_ROOT, column.element])),
            (3, I64, row_count),
            (4, LIST, (STRUCT, [row_group])),
        ]
        if _ARROW_SCHEMA in (self._metadata.metadata or {}):
            fields.append((5, LIST, (STRUCT, [_arrow_schema(self._arrow_schema.field(name))])))
        return encode([*fields, (6, BINARY, (self._metadata.created_by or "").encode())])


def _rows_before(rows: range, pages: list[_Page]) -> int:
    """Return how many rows of these pages come before the first that is asked for."""
    return rows.start - pages[0].first_row


def _bytes(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _row_group(column: _Column, about: Any, row_count: int, dictionary_bytes: int, end: int) -> bytes:
    """A row group of one column, whose pages are at the beginning of the file."""
    start = len(_MARK)
    chunk = encode(
        [
            (1, I32, column.physical_type),
            (2, LIST, (I32, [_ENCODINGS[name] for name in about.encodings])),
            (3, LIST, (BINARY, [about.path_in_schema.encode()])),
            (4, I32, _CODECS[about.compression]),
            (5, I64, row_count),
            (6, I64, about.total_uncompressed_size),
            (7, I64, end - start),
            (9, I64, start + dictionary_bytes),
            *([(11, I64, start)] if dictionary_bytes else []),
        ]
    )
    columns = (STRUCT, [encode([(2, I64, start), (3, STRUCT, chunk)])])
    return encode([(1, LIST, columns), (2, I64, about.total_uncompressed_size), (3, I64, row_count)])


def _arrow_schema(field: Any) -> bytes:
    """The metadata by which pyarrow knows types that Parquet hasn't."""
    import pyarrow as pa

    schema = base64.b64encode(pa.schema([field]).serialize().to_pybytes())
    return encode([(1, BINARY, _ARROW_SCHEMA), (2, BINARY, schema)])


def _schema_of(file: BinaryIO) -> _Schema:
    tail = len(_MARK) + 4
    file.seek(-tail, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-tail - length, os.SEEK_END)
    footer = file.read(length)
    decoder = Decoder(footer)
    version = number = 0
    while header := decoder.field(number):
        number, kind = header
        if number == 2:
            return _Schema(version, _columns(decoder, footer))
        version = decoder.value(kind)
    raise ValueError("the footer has no schema")


def _columns(decoder: Decoder, footer: bytes) -> dict[str, _Column]:
    """The columns of a schema that are neither nested nor repeated."""
    decoder.items()
    columns, number = {}, 0
    for _ in range(decoder.struct()[5]):
        begin = decoder.at
        element = decoder.struct()
        if element.get(5):
            number += _leaves(decoder, element[5])
        else:
            if element.get(3) != _REPEATED:
                columns[element[4].decode()] = _Column(number, element[1], footer[begin : decoder.at])
            number += 1
    return columns


def _leaves(decoder: Decoder, child_count: int) -> int:
    """Pass over what is below an element; returns how many columns a row group has of it."""
    count = 0
    for _ in range(child_count):
        children = decoder.struct().get(5)
        count += _leaves(decoder, children) if children else 1
    return count
