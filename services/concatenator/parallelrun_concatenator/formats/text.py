"""Lines of text, and the names of their columns at the top of the file once, if the job says so (reference §7).

Then each segment begins with the length of its own header and the header. When mini-batches have different columns, the
file has all of them, in the order in which they first come, and what a row lacks stays empty.
"""

from __future__ import annotations

import csv
import io
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from parallelrun_concatenator.merge import Assembler, Verbatim
from parallelrun_concatenator.output import BlockWriter
from parallelrun_concatenator.parts import PartFiles
from parallelrun_concatenator.segments import Segment, SegmentTable
from parallelrun_core.figures import counted
from parallelrun_core.spec import JobSpec

_LENGTH = struct.Struct("<I")
_RETURN = "\ud800"
"""Stands for a carriage return while lines are read: rows end with line feeds alone, and it is in no valid text."""

Column = tuple[str, int]
"""A name, and how many columns of that name precede it in the same header."""


def assembler(spec: JobSpec, table: SegmentTable, parts: PartFiles) -> Assembler:
    """The assembler of a job's lines.

    Raises:
        OSError: a part can't be read.
    """
    if not spec.append_row_dataframe_header:
        return Verbatim()
    return HeadedText(table.in_order(), parts, spec.append_row_separator)


class HeadedText:
    """Reads all headers first, then copies the rows.

    Args:
        segments: all of them, in order.
    """

    def __init__(self, segments: Iterable[Segment], parts: PartFiles, separator: str) -> None:
        csv.field_size_limit(sys.maxsize)  # a cell may be as long as a script makes it
        self.notes: list[str] = []
        self._separator = separator
        self._columns: dict[Column, int] = {}
        self._layouts: dict[bytes, list[int]] = {}  # where each column of a header is in the output
        nameless = 0
        for segment in segments:
            header = self._header(segment, parts)
            nameless += not header
            if header and header not in self._layouts:
                columns = self._read_header(header)
                self._layouts[header] = [self._columns.setdefault(each, len(self._columns)) for each in columns]
        if len(self._layouts) > 1:
            self.notes.append(
                f"Mini-batches returned {len(self._layouts):,} different sets of columns; the output has all of them, "
                "and empty fields where a row has none."
            )
        if nameless and self._layouts:
            self.notes.append(f"{counted(nameless, 'mini-batch')} returned rows without column names.")

    def _header(self, segment: Segment, parts: PartFiles) -> bytes:
        begin = parts.begin(segment, 4096)
        end = _LENGTH.size + (_LENGTH.unpack_from(begin)[0] if len(begin) >= _LENGTH.size else 0)
        return (begin if end <= len(begin) else parts.begin(segment, end))[_LENGTH.size : end]

    def _read_header(self, header: bytes) -> list[Column]:
        counts: Counter[str] = Counter()
        columns = []
        for name in next(self._rows(header), []):
            columns.append((name, counts[name]))
            counts[name] += 1
        return columns

    def _rows(self, data: bytes) -> Iterator[list[str]]:
        text = data.decode("utf-8", "surrogateescape")
        if "\r" not in text:
            return csv.reader(io.StringIO(text, newline="\n"), delimiter=self._separator)
        rows = csv.reader(io.StringIO(text.replace("\r", _RETURN), newline="\n"), delimiter=self._separator)
        return ([cell.replace(_RETURN, "\r") for cell in row] for row in rows)

    def assemble(self, segments: Iterable[Segment], parts: PartFiles, output: BlockWriter) -> None:
        """Write the header, then the rows."""
        if self._columns:
            output.write(self._line([name for name, _ in self._columns]))
        as_it_is = list(range(len(self._columns)))
        for segment in segments:
            data = parts.read(segment)
            end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
            layout = self._layouts.get(data[_LENGTH.size : end], as_it_is)
            if layout == as_it_is:
                output.write(memoryview(data)[end:])
            else:
                for row in self._rows(data[end:]):
                    output.write(self._placed(row, layout))

    def _placed(self, row: list[str], layout: list[int]) -> bytes:
        cells = [""] * len(self._columns)
        for place, cell in zip(layout, row, strict=False):
            cells[place] = cell
        return self._line(cells)

    def _line(self, cells: list[str]) -> bytes:
        text = io.StringIO(newline="")
        # A cell is quoted for line breaks only if they are in the writer's own line terminator.
        csv.writer(text, delimiter=self._separator, lineterminator="\r\n").writerow(cells)
        return text.getvalue().removesuffix("\r\n").encode("utf-8", "surrogateescape") + b"\n"
