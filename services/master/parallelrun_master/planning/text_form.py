"""The form of a text file: what it takes to find its records."""

from __future__ import annotations

from typing import BinaryIO, Final, NamedTuple

from parallelrun_core.storage.interface import read_at
from parallelrun_master.planning.table_format import DamagedFile
from parallelrun_worker.tables.charsets import OtherEncoding
from parallelrun_worker.tables.heads import HeadRules, read_head
from parallelrun_worker.tables.records import Grammar
from parallelrun_worker.tables.sniffing import FIRST_BYTES, Encoding, NotText, check_controls, first_width, sniffed

_UNITS: Final = {"utf-16-le": "<u2", "utf-16-be": ">u2", "utf-32-le": "<u4", "utf-32-be": ">u4"}


class TextForm(NamedTuple):
    """The properties of a text file that it takes to find its records."""

    unit: str
    """NumPy's name for one character."""
    encoding: Encoding
    start: int
    """The position where the first record begins."""
    delimiter: bytes
    multi_line: bool
    grammar: Grammar | None
    """None: records have no fields."""
    fields: int | None
    """Number of fields of the first record; None: lines end with carriage returns."""
    comment: str

    @property
    def width(self) -> int:
        """Bytes of one character."""
        return self.encoding.width


def form_of(file: BinaryIO, encoding: str, rules: HeadRules | None = None) -> TextForm:
    """Return what a file's first bytes and its table's settings say.

    Args:
        rules: of delimited text; None: records have no fields, and there is no header.

    Raises:
        DamagedFile: the file is no text, or its header is in another encoding.
        OSError: it can't be read.
    """

    def read_some(size: int, at: int) -> bytes:
        return read_at(file, at, size)

    try:
        file_encoding = sniffed(read_some, encoding)
        unit = _UNITS.get(file_encoding.name, "u1")
        if rules is None:
            return TextForm(unit, file_encoding, file_encoding.bom, b",", False, None, None, "")
        head = read_head(read_some, file_encoding, rules)
        check_controls(read_some(FIRST_BYTES, 0), file_encoding, 0, head.delimiter)
    except (NotText, OtherEncoding) as error:
        raise DamagedFile(str(error)) from error
    grammar = Grammar(head.delimiter, multi_line=rules.multi_line)
    fields = None if file_encoding.has_returns else first_width(read_some, file_encoding, grammar)
    mark = head.delimiter.encode(file_encoding.name, "replace")
    return TextForm(unit, file_encoding, head.start, mark, rules.multi_line, grammar, fields, rules.comment)
