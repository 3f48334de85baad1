"""Avro files: cut between their blocks. A number of rows may begin and end within blocks, which are then read twice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.formats.avro import ReadAvro
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import FileVersion, Piece, Remote
from parallelrun_master.planning.avro_blocks import AvroHeader, Block, blocks_of, read_header
from parallelrun_master.planning.table_format import DamagedFile, TableCutting

_BLOCKS_AT_ONCE: Final = 1000
_MATTERS: Final = ("name", "type", "fields", "symbols", "items", "values", "size", "logicalType", "precision", "scale")
"""What a schema says that decides how rows are read."""


class AvroCutting(TableCutting):
    """Each piece knows how many rows it has."""

    def pieces(self, path: bytes) -> Iterator[Piece | None]:
        name = os.fsdecode(path)
        with self.opened(path, is_streamed=True) as file:
            header = self._header(file, name)
            filling = _Filling(path, self.size_bytes, self.size_rows, header.end, self.version)
            try:
                for number, block in enumerate(blocks_of(file, header, name)):
                    rows = self.window.next(block.rows)
                    first_row = self.window.seen - self.window.first
                    self.window.seen += block.rows
                    yield from filling.add(block, rows, first_row)
                    if self.window.is_over:
                        break
                    if number % _BLOCKS_AT_ONCE == 0:
                        yield None
            except DamagedFile:
                yield from filling.finish()
                raise
            yield from filling.finish()

    def whole(self, path: bytes) -> Piece:
        with self.opened(path) as file:
            self._header(file, os.fsdecode(path))
        return Piece(path)

    @staticmethod
    def prepare(plan: InputPlan, rule: PathRule | None = None) -> None:
        """Put the schema of the first file into the plan."""
        assert isinstance(plan.read, ReadAvro)  # noqa: S101 - for the type checker
        errors: list[DamagedFile] = []
        for name in plan.sample:
            try:
                with storage_of(name).open(name, rule) as file:
                    schema = read_header(file, name).schema
                _columns(schema, name)
            except DamagedFile as error:  # it fails the mini-batch of its own rows
                errors.append(error)
                continue
            plan.read = msgspec.structs.replace(plan.read, schema=schema)
            return
        if errors:
            raise errors[0]

    def _header(self, file: BinaryIO, name: str) -> AvroHeader:
        header = read_header(file, name)
        assert isinstance(self.plan.read, ReadAvro)  # noqa: S101 - for the type checker
        schema = self.plan.read.schema
        if header.schema == schema:
            return header
        own_columns, first = _columns(header.schema, name), _columns(schema, name)
        if [*own_columns.items()] != [*first.items()]:
            differing = [column for column in {**first, **own_columns} if own_columns.get(column) != first.get(column)]
            difference = f"differs in {', '.join(differing)}" if differing else "has another order"
            raise InvalidInput(
                f"{name}: its schema is not that of {self.plan.sample[0]}, it {difference}; files of one input "
                "must have the same columns: make an input of the files of each schema"
            )
        return header


class _Filling:
    """Gathers the blocks of one file until they are enough for a piece."""

    def __init__(
        self, path: bytes, size_bytes: int, size_rows: int | None, header_end: int, version: FileVersion | None
    ) -> None:
        self._path = path
        self._header_end = header_end
        self._version = version
        self._bytes = size_bytes
        self._most_rows = size_rows
        self._start = self._end = self._left_out = self._rows = self._first_row = 0

    def add(self, block: Block, rows: range, first_row: int) -> Iterator[Piece]:
        """The pieces that are full with the wanted rows of the next block."""
        if self._most_rows is None and self._end and block.end - self._start > self._bytes:
            yield from self.finish()
        low = rows.start
        while low < rows.stop:
            if not self._rows:
                self._start, self._left_out, self._first_row = block.start, low, first_row + low
            high = rows.stop if self._most_rows is None else min(rows.stop, low + self._most_rows - self._rows)
            self._rows += high - low
            self._end = block.end
            low = high
            if self._rows == self._most_rows:
                yield from self.finish()

    def finish(self) -> Iterator[Piece]:
        """Return what has been gathered, if there is anything."""
        if self._rows:
            extents = [(0, self._header_end), (self._start, self._end)]
            yield Piece(
                self._path, self._start, self._end, is_aligned=True, first_row=self._first_row,
                left_out=self._left_out, rows=self._rows,
                remote=None if self._version is None else Remote(self._version, extents),
            )  # fmt: skip
        self._end = self._rows = 0


def _columns(schema: str, name: str) -> dict[str, Any]:
    """Name and type of each column, in order.

    Raises:
        DamagedFile: it is no schema.
        InvalidInput: it is not the schema of a table.
    """
    try:
        record = json.loads(schema)
        if not isinstance(record, dict) or record.get("type") != "record" or not record.get("fields"):
            raise InvalidInput(f"{name}: its rows have no columns: the schema of a table is a record")
        return {str(field["name"]): _plain(field["type"]) for field in record["fields"]}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DamagedFile(f"{name}: not an Avro file: its schema can't be read: {error!r}") from error


def _plain(schema: Any) -> Any:
    if isinstance(schema, dict):
        plain = {key: _plain(value) for key, value in schema.items() if key in _MATTERS}
        return plain["type"] if plain.keys() == {"type"} else plain
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema
