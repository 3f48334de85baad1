"""Files of other kinds that somebody has read as text: what they are by their first bytes, and how to have them read.

Most of them would fail anyhow, by a byte that is no text; in a code page, some would be rows.
"""

import zlib

from parallelrun_worker.tables.unpacking import LZ4, compression_of

HEAD_BYTES = 262
"""How much of a file is looked at: as far as the mark of a tar archive."""
_TAR_AT, _TAR = 257, b"ustar"
_UNPACK = "unpack it first"
_COPY = "save it as text first, or leave it out"
_ZLIB = (b"x\x9c", b"x\xda")
"""What a zlib stream begins with; texts in some encodings may, too."""
_KINDS: dict[bytes, tuple[str, str]] = {
    b"PAR1\x15": ("a Parquet file", "read_parquet reads it"),
    b"Obj\x01": ("an Avro file", "read_avro reads it"),
    b"ARROW1\0\0": ("an Arrow file", _COPY),
    b"SQLite format 3\0": ("a database of SQLite", _COPY),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("a document of Office, such as an Excel workbook (.xls)", _COPY),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", _COPY),
    b"%PDF-": ("a PDF", _COPY),
    b"{\\rtf": ("a document in RTF", _COPY),
    b"\x89PNG\r\n\x1a\n": ("a picture (PNG)", "leave it out"),
    b"\xff\xd8\xff": ("a picture (JPEG)", "leave it out"),
    b"PK\x05\x06": ("an empty zip archive", "leave it out"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", _UNPACK),
    b"Rar!\x1a\x07": ("a RAR archive", _UNPACK),
    LZ4: ("an lz4 file", _UNPACK),
    b"\x02\x21\x4c\x18": ("an lz4 file of the old form", _UNPACK),
    b"\x1f\x9d": ("a file of compress (.Z)", _UNPACK),
    b"LZIP\x01": ("an lzip file", _UNPACK),
    b"\x89LZO\0\r\n\x1a\n": ("an lzop file", _UNPACK),
    b"]\0\0\x80\0": ("an lzma file", _UNPACK),
}


def check_kind(head: bytes, compression: str = "") -> None:
    """Check that a file may be text.

    Args:
        head: the first `HEAD_BYTES` of it, or of its content.
        compression: how its content is compressed; empty if it isn't.

    Raises:
        ValueError: it is known to be something else.
    """
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        name = head.partition(b"\0")[0][:80].decode(errors="replace")
        kind, remedy = f"an archive (tar), whose first file is {name!r}", _UNPACK
    elif compression and (inner := compression_of(head, "")):
        kind, remedy = f"another {inner} file", _UNPACK
    elif head.startswith(_ZLIB) and _is_zlib(head):
        kind, remedy = "a zlib file (.deflate)", _UNPACK
    else:
        kind, remedy = next((each for magic, each in _KINDS.items() if head.startswith(magic)), ("", ""))
        if not kind:
            return
    where = f"in this {compression} file is {kind}" if compression else f"it is {kind}"
    raise ValueError(f"{where}, and no text: {remedy}")


def _is_zlib(head: bytes) -> bool:
    try:
        zlib.decompressobj().decompress(head)
    except zlib.error:
        return False
    return True
