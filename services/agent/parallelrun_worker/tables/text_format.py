"""The base of the kinds of tables that are text: ranges of bytes, encodings, and a schema that is inferred."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, BinaryIO, NamedTuple, cast

from parallelrun_worker.plurals import counted
from parallelrun_worker.tables.byte_profile import ByteProfile, byte_profile_of
from parallelrun_worker.tables.charsets import refusing
from parallelrun_worker.tables.data_warnings import DataWarning
from parallelrun_worker.tables.elsewhere import read_range, read_some, size_of
from parallelrun_worker.tables.foreign import HEAD_BYTES, check_kind
from parallelrun_worker.tables.heads import FileHead
from parallelrun_worker.tables.inference import STRING, Kind
from parallelrun_worker.tables.misreadings import warn_of_other_ends
from parallelrun_worker.tables.records import Record
from parallelrun_worker.tables.schema import Schema, freeze, frozen
from parallelrun_worker.tables.sniffing import FIRST_BYTES, Encoding, check_controls
from parallelrun_worker.tables.table_format import Piece, Records, TableFormat, named
from parallelrun_worker.tables.text import encoding_of, is_utf8, lines_before, owned_range, to_utf8, without_end_mark
from parallelrun_worker.tables.unpacking import LIMIT_BYTES, TooLarge, Unpacked, compression_of, unpack
from parallelrun_worker.tables.values import BadValue, Values, warning_of

_MOST_WARNED = 10_000
SAMPLE_BYTES = 1 << 20
"""How much of a file is read to infer types."""


class TextFormat(TableFormat):
    """The base of such kinds."""

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self.sample: list[str] = plan["sample"]
        self._path = schema_path
        self._frozen: Schema | None = None
        self._unpacked: tuple[tuple[str, int], Unpacked] | None = None
        """Path, size and content of the compressed file that was read last: its next piece needs it again."""
        self._refused: dict[tuple[str, int], str] = {}
        """Why compressed files can't be unpacked, which takes long to find out of large ones."""
        self._row_places: tuple[int, Callable[[int], tuple[int, int]]] | None = None
        """Where the piece begins that is read, and what gives line and byte of one of its rows."""
        self._warned_from: dict[tuple[str, str, str], int] = {}
        """Where the first piece began of which a warning told, by file, column and rule."""

    @abstractmethod
    def inferred(self) -> Schema:
        """Return what the first rows look like.

        Raises:
            OSError, ValueError: the first files can't be read.
        """

    def sampled(self) -> Iterator["Sampled"]:
        """The first files that can be read: another one fails the mini-batches of its own rows only.

        Raises:
            OSError, ValueError: none of them can be read.
        """
        errors: list[OSError | ValueError] = []
        for path in self.sample:
            try:
                with named(path), self.opened(path) as file:
                    sampled = Sampled(file, encoding_of(file, self.options["encoding"]), self.head(path, file))
                    _check_first_bytes(file, sampled.encoding, sampled.head)
                    yield sampled
            except (OSError, ValueError) as error:
                errors.append(error)
        if errors and len(errors) == len(self.sample):
            raise errors[0]

    @abstractmethod
    def split(self, text: "PieceText") -> list[bytes]:
        """The records of a piece one by one, each fit to be put beside any other; dropped ones are left out."""

    @abstractmethod
    def frame_of_stored(self, data: bytes, path: str, header: Record) -> Any:
        """Text in UTF-8, without a header, as a DataFrame. Nobody is warned: who has stored it has done that."""

    def head(self, path: str, file: BinaryIO) -> FileHead:
        """Return what is before the rows of a file."""
        return FileHead([], 0, "")

    def schema(self) -> Schema:
        """Return the schema: the same for all workers, and for as long as the job runs."""
        if self._frozen is None:
            self._frozen = frozen(self._path) or freeze(self._path, self.inferred())
        return self._frozen

    def text(self, piece: Piece) -> "PieceText":
        """The records that a piece owns.

        Raises:
            OSError, ValueError: it can't be read.
        """
        path, start, end, is_aligned = piece[:4]
        with self.opened(path, is_content_needed=is_aligned or not start) as file:
            if isinstance(file, Unpacked) and not is_aligned:
                start, end = 0, -1  # the first piece of a compressed file has all of its records
            encoding = encoding_of(file, self.options["encoding"])
            head = self.head(path, file)
            if not start:
                _check_first_bytes(file, encoding, head)  # of garbage in one line, all is the header
                if head.line and head.start >= size_of(file) and not _has_end(file, encoding):
                    warn_of_other_ends(self.warnings, path, head.line, encoding)
            owned = owned_range(file, start, end, encoding, is_aligned=is_aligned, first=head.start)
            data = read_range(file, owned.start, owned.stop)
            if owned.stop >= size_of(file):
                data = without_end_mark(data, encoding)
            byte_profile = byte_profile_of(data)
            check_controls(data, encoding, owned.start, head.delimiter, byte_profile)
            self._warn_of_code_page(path, data, encoding)
            with refusing(encoding, owned.start, data):
                lines = self.lines(
                    to_utf8(data, encoding), encoding, file, head, may_have_returns=byte_profile.has_returns
                )
            is_same = lines is data  # bytes of ASCII are so in any code page
        return PieceText(lines, encoding, owned.start, head, any(piece[7:8]), byte_profile if is_same else None)

    def _warn_of_code_page(self, path: str, data: bytes, encoding: Encoding) -> None:
        """Warn if a text is UTF-8 by its bytes, and is read in a code page in which each byte is a character."""
        if encoding.width == 1 and encoding.name != "utf-8" and not data.isascii() and is_utf8(data):
            event = f"its bytes are those of UTF-8, and were read as {encoding.name}, as the job says"
            self.warnings.add(DataWarning("code_page", path, "", event, "encoding: utf8, an option of the read step"))

    @contextmanager
    def opened(self, path: str, *, is_content_needed: bool = True) -> Iterator[BinaryIO]:
        """A file, or its content if it is compressed.

        Args:
            is_content_needed: otherwise a compressed file is taken for an empty one.

        Raises:
            OSError, ValueError: it can't be read.
        """
        with self.open(path, "rb") as file:
            head = read_some(file, HEAD_BYTES, 0)
            compression = compression_of(head, path)
            if not compression:
                check_kind(head)
                yield file
                return
            if not is_content_needed:
                yield cast(BinaryIO, Unpacked(b""))
                return
            key = (path, size_of(file))
            yield cast(BinaryIO, self._unpacked_content(file, key, compression))

    def _unpacked_content(self, file: BinaryIO, key: tuple[str, int], compression: str) -> Unpacked:
        if self._unpacked is not None and self._unpacked[0] == key:
            return self._unpacked[1]
        if key in self._refused:
            raise ValueError(self._refused[key])
        self._unpacked = None  # one of them in memory is enough
        limit = self.options.get("unpacked_limit") or LIMIT_BYTES
        packed = read_range(file, 0, key[1])
        try:
            content = Unpacked(unpack(packed, compression, limit))
            check_kind(content.pread(HEAD_BYTES, 0), compression)
        except TooLarge as error:
            self._refused[key] = str(error)
            raise
        self._unpacked = key, content
        return content

    @abstractmethod
    def lines(
        self, data: bytes, encoding: Encoding, file: BinaryIO, head: FileHead, *, may_have_returns: bool = True
    ) -> bytes:
        """Some records of a file in UTF-8, with newlines at their ends instead of carriage returns alone."""

    def frame(self, piece: Piece) -> Any:
        text = self.text(piece)
        with self.placing(piece[0], text):
            return self.frame_of(text, piece[0])

    @abstractmethod
    def frame_of(self, text: "PieceText", path: str) -> Any:
        """The records of a piece as a DataFrame, with warnings about them; inside `placing`."""

    def kinds(self) -> dict[str, Kind]:
        schema = self.schema()
        return dict(zip(schema.names, schema.kinds, strict=True))

    def has_texts_of_values(self, rows: Any) -> bool:
        import pyarrow as pa

        kinds = self.kinds()
        texts = [field.name for field in rows.schema if pa.types.is_string(field.type)]
        return any(kinds.get(name, STRING)["kind"] != "string" for name in texts)

    def values(self) -> Values | None:
        """Return how values are read that are odd for their column; None: as earlier releases did."""
        if not self.options.get("has_exact_integers"):
            return None
        values = Values(self.options["on_mismatch"], is_exact=self.options["inference"] == "exact")
        values.text_dtype = self.text_dtype
        return values

    def warn(self, values: Values | None, path: str) -> None:
        """Warn of the odd values that were not kept."""
        for odd_value in values.found.values() if values is not None else ():
            place = self._place_of(odd_value.row, (path, odd_value.column, odd_value.rule))
            self.warnings.add(warning_of(odd_value, path, *place))

    def _place_of(self, row: int, key: tuple[str, str, str]) -> tuple[int, int]:
        """Line and byte of a row; 0 and -1 where an earlier part of the file has been warned of: that has the first."""
        if self._row_places is None:
            return 0, -1
        start, place_of = self._row_places
        if start > self._warned_from.get(key, start):
            return 0, -1
        if len(self._warned_from) >= _MOST_WARNED:
            self._warned_from.clear()
        self._warned_from[key] = start
        return place_of(row)

    def records(self, piece: Piece) -> Records:
        text = self.text(piece)
        with self.placing(piece[0], text):
            return TextRecords(self, self.split(text), piece[0], text)

    @contextmanager
    def placing(self, path: str, text: "PieceText") -> Iterator[None]:
        """Say where in the file the text is wrong that is read in here."""
        split = cache(partial(self.split, text))
        self._row_places = text.start, partial(self._row_place, path, text, split)
        try:
            with refusing(text.encoding, text.start, text.data):
                yield
        except BadLine as error:
            raise ValueError(f"{self._line(path, text, error.number)}: {error}") from error
        except BadValue as error:
            line, offset = self._row_place(path, text, split, error.row)
            place = f"line {line:,}" if line else f"record at byte {offset:,}"
            raise ValueError(f"{place}, {error}" if line or offset >= 0 else str(error)) from error
        finally:
            self._row_places = None

    def _row_place(self, path: str, text: "PieceText", split: Callable[[], list[bytes]], row: int) -> tuple[int, int]:
        """The line of a row in its file, from 1, and the byte at which it begins; 0 and -1: not known."""
        begin = self.row_begin(text, split, row)
        return self.place_in(path, text, begin) if begin >= 0 else (0, -1)

    def row_begin(self, text: "PieceText", split: Callable[[], list[bytes]], row: int) -> int:
        """The position of a row in its text; -1: not known."""
        begin = end = 0
        for record in split()[: row + 1]:
            begin = text.data.find(record.rstrip(b"\n"), end)
            if begin < 0:  # it was written in another way
                return -1
            end = begin + len(record)
        return begin

    def place_in(self, path: str, text: "PieceText", begin: int) -> tuple[int, int]:
        """The line of a place in a text in its file, from 1 (0: not known), and its byte there."""
        before = text.data[:begin]
        name = text.encoding.name
        length = begin if name == "utf-8" else len(before.decode().encode(name, "replace"))
        try:
            with self.opened(path) as file:
                line = lines_before(file, text.start, text.encoding) + before.count(b"\n") + 1
        except OSError:  # of a staged file, what is before the piece may not be here
            line = 0
        return line, text.start + length

    def _line(self, path: str, text: "PieceText", number: int) -> str:
        """The number of a line in its file, of which so many lines are before it in a piece."""
        try:
            with self.opened(path) as file:
                return f"line {lines_before(file, text.start, text.encoding) + number + 1:,}"
        except OSError:  # of a staged file, what is before the piece may not be here
            return f"line {number + 1:,} after byte {text.start:,}"


def _check_first_bytes(file: BinaryIO, encoding: Encoding, head: FileHead) -> None:
    check_controls(read_some(file, FIRST_BYTES, 0), encoding, 0, head.delimiter)


def _has_end(file: BinaryIO, encoding: Encoding) -> bool:
    return read_some(file, encoding.width, size_of(file) - encoding.width) == encoding.newline


class Sampled(NamedTuple):
    """A file of the sample, from whose rows types are inferred."""

    file: BinaryIO
    """Open until the next one is asked for."""
    encoding: Encoding
    head: FileHead


class BadLine(ValueError):
    """A line can't be read.

    Args:
        number: how many lines of its text are before it.
        problem: what is wrong with it.
    """

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(problem)
        self.number = number


class PieceText(NamedTuple):
    data: bytes
    """The records in UTF-8."""
    encoding: Encoding
    """The encoding of the file."""
    start: int
    """The position in the file where they begin."""
    head: FileHead
    """The head of the file."""
    has_sound_quotes: bool = False
    """The master has seen that none of its quotes may have been meant otherwise."""
    byte_profile: ByteProfile | None = None
    """The profile of `data`, if somebody has looked at its bytes; else None."""


class TextRecords(Records):
    """Records of text, each with a newline at its end."""

    def __init__(self, owner: TextFormat, lines: list[bytes], path: str, text: PieceText) -> None:
        self._owner = owner
        self._lines = lines
        self._path = path
        self._text = text
        self.header = text.head.header

    def __len__(self) -> int:
        return len(self._lines)

    def frame(self, indices: list[int] | None = None) -> Any:
        if indices is not None:
            lines = [self._lines[at] for at in indices]
            return self._checked(self._owner.frame_of_stored(b"".join(lines), self._path, self.header), lines)
        with self._owner.placing(self._path, self._text):
            return self._checked(self._owner.frame_of(self._text, self._path), self._lines)

    @staticmethod
    def _checked(frame: Any, lines: list[bytes]) -> Any:
        if len(frame) != len(lines):
            raise ValueError(f"{counted(len(lines), 'record')} read as {counted(len(frame), 'row')}")
        return frame

    def stored(self, indices: list[int], keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        return keys, [self._lines[at] for at in indices]
