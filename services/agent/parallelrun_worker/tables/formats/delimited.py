"""Delimited text: the headers of its files, and columns with types inferred from its first rows."""

import os
from collections.abc import Callable
from itertools import islice
from typing import Any, BinaryIO

from parallelrun_worker.tables import by_arrow
from parallelrun_worker.tables.arrow_arrays import arrow_of
from parallelrun_worker.tables.arrow_types import NON_TEXT_KINDS
from parallelrun_worker.tables.conversion import convert
from parallelrun_worker.tables.elsewhere import read_range, read_some, size_of
from parallelrun_worker.tables.heads import FileHead, HeadRules, read_head
from parallelrun_worker.tables.line_ends import has_lone_returns, with_newlines, with_single_returns, without_comments
from parallelrun_worker.tables.misreadings import joint_in, warn_of_delimiter, warn_of_header
from parallelrun_worker.tables.misreadings import warning_of as joint_warning
from parallelrun_worker.tables.parsers import read_delimited
from parallelrun_worker.tables.quotes import may_be_escaped, may_run_on, open_quotes, warning_of
from parallelrun_worker.tables.ragged import ragged_rows
from parallelrun_worker.tables.ragged import warning_of as length_warning
from parallelrun_worker.tables.records import Grammar, NotPlain, Record
from parallelrun_worker.tables.schema import Schema, header_names, infer_schema
from parallelrun_worker.tables.sniffing import Encoding, first_width
from parallelrun_worker.tables.splitting import requoted_records, row_begin, split_records
from parallelrun_worker.tables.table_format import Piece
from parallelrun_worker.tables.text import as_utf8, encoding_of, without_end_mark
from parallelrun_worker.tables.text_dtype import put_text_dtype
from parallelrun_worker.tables.text_format import SAMPLE_BYTES, PieceText, Sampled, TextFormat
from parallelrun_worker.tables.values import Values

_MOST_HEADERS = 1000


class DelimitedFormat(TextFormat):
    """A record is a row."""

    imports = ("pyarrow.csv",)

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self._heads: dict[str, FileHead] = {}
        options = self.options
        self._rules = HeadRules(
            options["delimiter"], options["support_multi_line"], True, options.get("skip_lines", 0),
            options.get("comment", ""),
        )  # fmt: skip
        self._grammar = self._grammar_of(options["delimiter"])
        self._differs = options["header"] == "all_files_different_headers"
        """Each file has columns of its own."""
        self._by_name = self._differs or (
            options.get("columns_by") == "name" and options["header"] == "all_files_same_headers"
        )
        """Values belong to the columns that the header of their file names."""
        self.needs_source = self._by_name

    def _grammar_of(self, delimiter: str) -> Grammar:
        return Grammar(delimiter, multi_line=self.options["support_multi_line"])

    def split(self, text: PieceText) -> list[bytes]:
        if text.head.delimiter == self._grammar.delimiter:
            return split_records(text.data, self._grammar)
        return requoted_records(text.data, self._grammar_of(text.head.delimiter), self._grammar)

    def row_begin(self, text: PieceText, split: Callable[[], list[bytes]], row: int) -> int:
        is_other = text.head.delimiter != self._grammar.delimiter  # records are split in the form of the table's own
        begin = -1 if is_other else super().row_begin(text, split, row)
        return begin if begin >= 0 else row_begin(text.data, self._grammar_of(text.head.delimiter), row)

    def frame_of(self, text: PieceText, path: str) -> Any:
        return self._rows_of(text, path, read_delimited)

    def arrow(self, piece: Piece) -> Any:
        text = self.text(piece)
        with self.placing(piece[0], text):
            try:
                rows = self._rows_of(text, piece[0], by_arrow.read_table)
            except NotPlain:
                rows = self.frame_of(text, piece[0])
        return arrow_of(rows, self.kinds()) if hasattr(rows, "iloc") else rows

    def _rows_of(self, text: PieceText, path: str, read: Callable[..., Any]) -> Any:
        grammar = self._grammar_of(text.head.delimiter)
        values = self.values()
        if values is not None and text.has_sound_quotes:
            values.may_hold_newlines = False  # nobody has to know
        if values is not None:
            values.byte_profile = text.byte_profile
        frame = self._frame(text.data, text.head.header, grammar, values, read=read)
        self.warn(values, path)
        if values is not None and b'"' in text.head.line and text.start == text.head.start:
            quotes = open_quotes(text.head.line, grammar)
            if quotes is not None:
                self.warnings.add(warning_of(quotes, path, 0, -1, "header: "))
        if values is not None and _may_have_open_quotes(text.data, grammar, values):
            self._warn_of_quotes(text, path, grammar)
        if values is not None:
            if warn_of_delimiter(self.warnings, path, text.data, text.head, len(frame)):
                return frame
            if text.head.header and (values.may_be_ragged or len(frame.columns) > len(text.head.header)):
                self._warn_of_lengths(text, path, grammar)
            odd_columns = {column for column, _ in values.found}
            joint = joint_in(text.data, text.head, self.schema(), frame, odd_columns, byte_profile=text.byte_profile)
            if joint:
                place = self.place_in(path, text, joint.at)
                self.warnings.add(joint_warning(joint, text.head.header, path, *place))
        if text.head.header and self.options["header"] == "all_files_same_headers":
            warn_of_header(self.warnings, path, text.head.header, self.schema(), len(frame), by_name=self._by_name)
        return frame

    def _warn_of_quotes(self, text: PieceText, path: str, grammar: Grammar) -> None:
        quotes = open_quotes(text.data, grammar)
        if quotes is not None:
            place = self.place_in(path, text, quotes.at)
            self.warnings.add(warning_of(quotes, path, *place))

    def _warn_of_lengths(self, text: PieceText, path: str, grammar: Grammar) -> None:
        for ragged in ragged_rows(text.data, len(text.head.header), grammar):
            place = self.place_in(path, text, row_begin(text.data, grammar, ragged.first))
            self.warnings.add(length_warning(ragged, path, *place))

    def frame_of_stored(self, data: bytes, path: str, header: Record) -> Any:
        return self._frame(data, header, self._grammar, self.values(), read=read_delimited)

    def _frame(
        self, data: bytes, header: Record, grammar: Grammar, values: Values | None, *, read: Callable[..., Any]
    ) -> Any:
        schema, empty_as_string = self.schema(), self.options["empty_as_string"]
        names = header_names(header) if self._by_name else []
        if not self._by_name or (not self._differs and schema.has_order_of(names)):
            rows = read(data, schema, grammar, empty_as_string=empty_as_string, values=values)
        else:
            by_header = Schema(names, [schema.kind_of(name) for name in names])
            rows = _united(
                read_delimited(data, by_header, grammar, empty_as_string=empty_as_string, values=values), schema
            )
        if self.text_dtype is not None and hasattr(
            rows, "iloc"
        ):  # the parser has made it only of texts that it knows as Arrow's
            texts = [name for name in rows.columns if schema.kind_of(name)["kind"] not in NON_TEXT_KINDS]
            put_text_dtype(rows, texts, self.text_dtype)
        return rows

    def head(self, path: str, file: BinaryIO) -> FileHead:
        head = self._heads.get(path)
        if head is None:
            encoding = encoding_of(file, self.options["encoding"])
            rules = self._rules._replace(has_header=self._has_header(path))
            head = read_head(lambda size, at: read_some(file, size, at), encoding, rules)
            if size_of(file):  # a compressed file whose content isn't needed looks empty
                self._keep(path, head)
        return head

    def _keep(self, path: str, head: FileHead) -> None:
        if len(self._heads) > _MOST_HEADERS:
            self._heads.clear()
        self._heads[path] = head

    def _has_header(self, path: str) -> bool:
        mode = self.options["header"]
        return mode != "no_header" and (mode != "from_first_file" or path == self._first_with_text())

    def lines(
        self, data: bytes, encoding: Encoding, file: BinaryIO, head: FileHead, *, may_have_returns: bool = True
    ) -> bytes:
        grammar = self._grammar_of(head.delimiter)
        if may_have_returns and has_lone_returns(data):
            data = with_single_returns(data, grammar)
            is_counted = not encoding.has_returns
            width = first_width(lambda size, at: read_some(file, size, at), encoding, grammar) if is_counted else None
            data = with_newlines(data, grammar, width)
        return without_comments(data, self._rules.comment, grammar) if self._rules.comment else data

    def _first_with_text(self) -> str:
        planned: str | None = self.plan.get("first_with_text")
        return planned if planned is not None else next((path for path in self.sample if os.stat(path).st_size > 3), "")

    def names(self) -> list[str]:
        names = list(self.inferred().names)
        if self._by_name:
            for sampled in self.sampled():
                names += header_names(sampled.head.header)
        return names

    def inferred(self) -> Schema:
        most = self.options["sample_size"]
        names: list[str] = []
        samples: list[tuple[list[str], list[Record]]] = []
        count = 0
        for sampled in self.sampled():
            records = self._first_records(sampled, most - count)
            own_names = header_names(sampled.head.header)
            if self._differs:
                own_names = Schema(own_names, []).widened(max([0, *map(len, records)])).names
            if self._by_name or not names:
                names = list(dict.fromkeys([*names, *own_names]))
            samples.append((own_names if self._by_name else names, records))
            count += len(records)
            if count >= most:
                break
        rows = [row for own_names, records in samples for row in _in_order(records, own_names, names)]
        return infer_schema(names, rows, self.options)

    def _first_records(self, sampled: Sampled, count: int) -> list[Record]:
        """The first records of a file, from its first `SAMPLE_BYTES`."""
        file, encoding = sampled.file, sampled.encoding
        start = max(sampled.head.start, encoding.bom)
        data = read_range(file, start, start + SAMPLE_BYTES)
        if start + len(data) < size_of(file):  # the last record is not whole
            last = data.rfind(encoding.newline)
            while last > 0 and last % encoding.width:
                last = data.rfind(encoding.newline, 0, last)
            data = data[: last + encoding.width] if last >= 0 else data
        else:
            data = without_end_mark(data, encoding)
        text = self.lines(as_utf8(data, encoding), encoding, file, sampled.head).decode(errors="replace")
        return list(islice(self._grammar_of(sampled.head.delimiter).records(text), max(0, count)))


def _may_have_open_quotes(data: bytes, grammar: Grammar, values: Values) -> bool:
    """Return whether quotes in a text may have been meant otherwise than as it was read."""
    if (values.byte_profile is None or values.byte_profile.has_backslashes) and may_be_escaped(data, grammar):
        return True
    if not grammar.multi_line:
        return values.is_unusual
    return values.may_hold_newlines and may_run_on(data, grammar)


def _in_order(records: list[Record], own_names: list[str], names: list[str]) -> list[Record]:
    """Records of a file with its own columns, with the columns of all files; what follows them stays there."""
    if own_names == names:
        return records
    return [
        [named.get(name) for name in names] for named in (dict(zip(own_names, row, strict=False)) for row in records)
    ]


def _united(frame: Any, schema: Schema) -> Any:
    """A file with a header of its own, with the columns of all."""
    import pandas as pd

    frame_names, schema_names = set(frame.columns), set(schema.names)
    missing = {
        name: convert(pd.Series([None] * len(frame), dtype=object), kind)
        for name, kind in zip(schema.names, schema.kinds, strict=True)
        if name not in frame_names
    }
    order = schema.names + [name for name in frame.columns if name not in schema_names]
    return pd.DataFrame({name: missing[name] if name in missing else frame[name] for name in order})
