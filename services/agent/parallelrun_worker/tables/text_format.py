"""What the kinds of tables have in common that are text: ranges of bytes, encodings, and a schema that is inferred."""

from abc import abstractmethod
from typing import Any, BinaryIO

from parallelrun_worker.tables.records import Record
from parallelrun_worker.tables.schema import Schema, freeze, frozen
from parallelrun_worker.tables.table_format import Piece, Records, TableFormat
from parallelrun_worker.tables.text import encoding_of, owned_bytes, to_utf8

SAMPLE_BYTES = 1 << 20
"""How much of a file is read to infer types."""


class TextFormat(TableFormat):
    """The base of such kinds."""

    def __init__(self, plan: dict[str, Any], schema_path: str) -> None:
        super().__init__(plan, schema_path)
        self.sample: list[str] = plan["sample"]
        self._path = schema_path
        self._frozen: Schema | None = None

    @abstractmethod
    def inferred(self) -> Schema:
        """What the first rows look like.

        Raises:
            OSError, ValueError: the first files can't be read.
        """

    @abstractmethod
    def split(self, data: bytes) -> list[bytes]:
        """The records of such text one by one, each fit to be put beside any other; dropped ones are left out."""

    @abstractmethod
    def frame_of_stored(self, data: bytes, path: str, header: Record) -> Any:
        """Text in UTF-8, without a header, as a DataFrame."""

    def header(self, path: str, file: BinaryIO) -> tuple[Record, int]:
        """The header of a file and where its rows begin; nothing and 0 when it has none."""
        return [], 0

    def schema(self) -> Schema:
        """The same for all workers, and for as long as the job runs."""
        if self._frozen is None:
            self._frozen = frozen(self._path) or freeze(self._path, self.inferred())
        return self._frozen

    def text(self, piece: Piece) -> tuple[bytes, Record]:
        """The records that a piece owns, in UTF-8, and the header of its file.

        Raises:
            OSError, ValueError: it can't be read.
        """
        path, start, end, is_aligned = piece[:4]
        with self.open(path, "rb") as file:
            encoding = encoding_of(file, self.options["encoding"])
            header, first = self.header(path, file)
            data = owned_bytes(file, max(start, first), end, encoding, is_aligned=is_aligned)
        return to_utf8(data, encoding), header

    def frame(self, piece: Piece) -> Any:
        """See the base."""
        data, header = self.text(piece)
        return self.frame_of_stored(data, piece[0], header)

    def records(self, piece: Piece) -> Records:
        """See the base."""
        data, header = self.text(piece)
        return TextRecords(self, self.split(data), piece[0], header)

    def why(self, error: ValueError) -> str:
        """See the base."""
        if not isinstance(error, UnicodeDecodeError):
            return str(error)
        wrong = error.object[error.start : error.start + 4].hex(" ")
        return f"the text is not {self.options['encoding']} ({wrong}); set its encoding"


class TextRecords(Records):
    """Records of text, each with a newline at its end."""

    def __init__(self, owner: TextFormat, lines: list[bytes], path: str, header: Record) -> None:
        self._owner = owner
        self._lines = lines
        self._path = path
        self.header = header

    def __len__(self) -> int:
        return len(self._lines)

    def frame(self, wanted: list[int] | None = None) -> Any:
        """See the base."""
        lines = self._lines if wanted is None else [self._lines[at] for at in wanted]
        frame = self._owner.frame_of_stored(b"".join(lines), self._path, self.header)
        if len(frame) != len(lines):
            raise ValueError(f"{len(lines)} records were read as {len(frame)} rows")
        return frame

    def stored(self, wanted: list[int], keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """See the base."""
        return keys, [self._lines[at] for at in wanted]
