"""The files of a case, as bytes."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

Rows = Sequence[Sequence[Any]]

LINE_ENDS: Final = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
ENCODINGS: Final = {
    "utf-8": ("utf-8", b""), "utf-8-mark": ("utf-8", b"\xef\xbb\xbf"),
    "utf-16-le-mark": ("utf-16-le", b"\xff\xfe"), "utf-16-be-mark": ("utf-16-be", b"\xfe\xff"),
    "utf-16-le": ("utf-16-le", b""), "utf-16-be": ("utf-16-be", b""),
    "utf-32-le-mark": ("utf-32-le", b"\xff\xfe\0\0"), "utf-32-be": ("utf-32-be", b""),
    "cp1252": ("cp1252", b""),
}  # fmt: skip
"""Codec and mark."""

_FRAME = b"\x5a*M\x18\3\0\0\0abc"
FRAMES: Final[Mapping[str, tuple[str, bytes, bytes]]] = {
    "a frame before zst": ("zst", _FRAME, b""), "frames around zst": ("zst", _FRAME * 40, _FRAME),
    "an empty bz2 before it": ("bz2", bz2.compress(b""), b""), "zeros behind gz": ("gz", b"", bytes(512)),
    "zeros behind xz": ("xz", b"", bytes(8)), "text behind gz": ("gz", b"", b"id,c0\n"),
}  # fmt: skip
"""Compression, and what is before and behind the compressed content of a file."""


def _nested_types() -> dict[str, tuple[Any, list[Any]]]:
    import pyarrow as pa

    big, number = 2**53 + 1, pa.struct([("x", pa.int64())])
    return {
        "int64": (pa.int64(), [big, None, -big]), "uint64": (pa.uint64(), [2**64 - 1, None, 1]),
        "a list": (pa.list_(pa.int64()), [[big, None], None, []]), "an object": (number, [{"x": big}, None, {"x": 1}]),
        "an object in an object": (pa.struct([("o", number)]), [{"o": {"x": big}}, {"o": None}]),
        "a map": (pa.map_(pa.string(), pa.uint64()), [[("k", 2**64 - 1), ("j", None)], None]),
        "a list of objects": (pa.list_(number), [[{"x": big}, {"x": None}], None]),
        "a map of objects": (pa.map_(pa.string(), number), [[("k", {"x": big}), ("j", None)], None]),
        "a list of lists": (pa.list_(pa.list_(pa.int64())), [[[big, None]], [[1], None], None]),
    }  # fmt: skip


PARQUET: Final = _nested_types()
"""Types of Arrow with values that a float doesn't have, and nulls beside them."""
MAC: Final = b"\0\5\x16\7\0\2\0\0Mac OS X\n" + b"\0" * 60
LITTER: Final[Mapping[str, Mapping[str, bytes]]] = {
    "spark": {"_SUCCESS": b"", "._SUCCESS.crc": b"crc\0\0\0\0\0", ".a.csv.crc": b"crc\0\0\0\2\0\xff\x10\n"},
    "spark_running": {"_temporary/0/task/part-9.csv": b"id,c0\n900,x\n", "_committed_1": b'{"added":[]}'},
    "mac": {"._a": MAC, ".DS_Store": b"\0\0\0\1Bud1\n" + b"\0" * 60},
    "windows": {
        "Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 40,
        "desktop.ini": b"[.ShellClassInfo]\r\nA=1,3\r\n",
        "a.csv:Zone.Identifier": b"[ZoneTransfer]\r\nZoneId=3\r\n",
    },
    "office": {".~lock.a.csv#": b",user,host,26.11.2026 10:00,file:///home/user;"},
    "parquet": {"_metadata": b"PAR1\0\0PAR1", "_common_metadata": b"PAR1"},
    "delta": {"_delta_log/00000000000000000000.json": b'{"protocol":{}}\n'},
    "notebook": {".ipynb_checkpoints/a-checkpoint.csv": b"id,c0\n901,x\n"},
}
"""What others leave in folders."""


def delimited(
    header: Sequence[str] | None, rows: Rows, *, delimiter: str = ",", line_end: str = "\n", first: Sequence[str] = ()
) -> str:
    """Text of a delimited file; `first` are lines before its header. The line end `mixed` takes all in turn."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\0")
    for row in [*([header] if header is not None else []), *rows]:
        writer.writerow(["" if cell is None else cell for cell in row])
    return with_line_ends([*first, *buffer.getvalue().split("\0")[:-1]], line_end)


def json_lines(names: Sequence[str], rows: Rows, *, line_end: str = "\n") -> str:
    """Text of a file of JSON lines."""
    lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]
    return with_line_ends(lines, line_end)


def with_line_ends(lines: Sequence[str], line_end: str) -> str:
    """Lines with an end behind each."""
    ends = ["\n", "\r\n", "\r"] if line_end == "mixed" else [line_end]
    return "".join(f"{line}{ends[number * len(ends) // max(1, len(lines))]}" for number, line in enumerate(lines))


def encoded(text: str, encoding: str) -> bytes:
    """The bytes of a text, with the mark of this kind of encoding."""
    codec, mark = ENCODINGS[encoding]
    return mark + text.encode(codec)


def zipped(name: str, content: bytes) -> bytes:
    """A zip of one member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def archived(name: str, content: bytes) -> bytes:
    """A tar of one member, in a gz."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def compressed(content: bytes, how: str) -> bytes:
    """Packed content."""
    match how:
        case "gz":
            return gzip.compress(content, mtime=0)
        case "bz2":
            return bz2.compress(content)
        case "xz":
            return lzma.compress(content)
        case "zip":
            return zipped("inner.csv", content)
        case "zst":
            import zstandard

            return zstandard.ZstdCompressor().compress(content)
        case _:
            return content


def parquet(names: Sequence[str], rows: Rows, types: Sequence[Any]) -> bytes:
    """A Parquet file whose pages have checksums; types are Arrow's, or their names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [getattr(pa, kind)() if isinstance(kind, str) else kind for kind in types]
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    sink = io.BytesIO()
    table = pa.Table.from_arrays(columns, names=list(names))
    pq.write_table(table, sink, row_group_size=max(1, len(rows) // 3), write_page_checksum=True)
    return sink.getvalue()
