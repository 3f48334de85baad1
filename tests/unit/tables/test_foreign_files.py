"""Files of other kinds, read as text: each is refused by name, with what it is and what to do, and none is rows."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.tables.cutting import Cut, folder_with

ROWS = b"a,b\n" + b"".join(b"%d,x\n" % n for n in range(300))


def archive(mode: Any) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as tar:
        for name in ("rows.csv", "more.csv"):
            member = tarfile.TarInfo(name)
            member.size = len(ROWS)
            tar.addfile(member, io.BytesIO(ROWS))
    return sink.getvalue()


def zipped(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return sink.getvalue()


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    return sink.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("CREATE TABLE rows (a)")
    connection.close()
    return (folder / "rows.db").read_bytes()


FOREIGN: dict[str, tuple[Callable[[], bytes], str]] = {
    "a tar": (lambda: archive("w"), r"it is an archive \(tar\), whose first file is 'rows.csv', and no text: unpack"),
    "a tar in a gz": (
        lambda: archive("w:gz"),
        r"in this gz file is an archive \(tar\), whose first file is 'rows.csv'",
    ),
    "a tar in a bz2": (lambda: archive("w:bz2"), r"in this bz2 file is an archive \(tar\)"),
    "a tar in an xz": (lambda: archive("w:xz"), r"in this xz file is an archive \(tar\)"),
    "a tar in a zip": (lambda: zipped(rows=archive("w")), r"in this zip file is an archive \(tar\)"),
    "a gz in a gz": (
        lambda: gzip.compress(gzip.compress(ROWS)),
        "in this gz file is another gz file, .*: unpack it first",
    ),
    "a zip in a gz": (lambda: gzip.compress(zipped(rows=ROWS)), "in this gz file is another zip file"),
    "a zip in a zip": (lambda: zipped(rows=zipped(rows=ROWS)), "in this zip file is another zip file"),
    "a bz2 in an xz": (lambda: lzma.compress(bz2.compress(ROWS, 1)), "in this xz file is another bz2 file"),
    "a zip of two": (lambda: zipped(a=ROWS, b=ROWS), "this zip file has 2 files, and is read if it has one; unpack"),
    "a zip of none": (zipped, "it is an empty zip archive, and no text: leave it out"),
    "a workbook": (
        lambda: zipped(**{"[Content_Types].xml": b"<x/>", "xl__workbook.xml": b"<x/>"}),
        "a document of Office, such as an Excel workbook: save it as text first",
    ),
    "an old workbook": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        r"an Excel workbook \(.xls\), and no",
    ),
    "Parquet": (parquet, "it is a Parquet file, and no text: read_parquet reads it"),
    "Parquet in a gz": (lambda: gzip.compress(parquet()), "in this gz file is a Parquet file"),
    "a zlib stream": (lambda: zlib.compress(ROWS), r"it is a zlib file \(.deflate\), and no text: unpack it first"),
    "an lz4 with a frame before it": (
        lambda: b"\x5f*M\x18\x02\0\0\0ab\x04\x22\x4d\x18" + bytes(30),
        "it is an lz4 file, and no text: unpack it first",
    ),
    "an lzma": (lambda: lzma.compress(ROWS, lzma.FORMAT_ALONE), "it is an lzma file, and no text: unpack it first"),
    "a PDF": (lambda: b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n", "it is a PDF, and no text: save it as text"),
}


@pytest.mark.parametrize("size", ["1mb", "rows:50"])
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_of_another_kind_is_refused_in_words_and_the_others_are_read(kind: str, size: str) -> None:
    content, words = FOREIGN[kind]
    folder = folder_with({"a.csv": ROWS, "b.csv": content()})
    for encoding in ("utf8", "latin1"):
        cut = Cut(folder, [{"read_delimited": {"encoding": encoding}}], size, keep_errors=True)
        assert len(cut.rows()) == 300
        assert cut.errors
        for error in cut.errors:
            assert error.startswith(f"{folder}/b.csv: ")
            assert re.search(words, error), error


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress, gzip.compress])
def test_what_follows_a_compressed_stream_is_read_or_refused(compress: Callable[[bytes], bytes]) -> None:
    more = compress(b"300,x\n")
    folder = folder_with({"a.csv": compress(ROWS) + more, "b.csv": compress(ROWS) + b"junk" + more[4:]})
    cut = Cut(folder, ["read_delimited"], keep_errors=True)
    assert len(cut.rows()) == 301
    assert ["b.csv" in error and "damaged or cut off" in error for error in cut.errors] == [True]


@pytest.mark.parametrize("late", [0, 300])
def test_numbers_of_json_beyond_all_floats_are_not_infinite(late: int) -> None:
    text = '{"a": 1.5}\n' * late + '{"a": 1e999, "b": [-1e400, 1e+308]}\n{"a": 2.5}\n'
    for on_mismatch, kept in (("keep", "1e999"), ("null", None)):
        steps = [{"read_json_lines": {"on_mismatch": on_mismatch}}]
        cut = Cut(folder_with({"a.jsonl": text}), steps)
        rows = cut.rows()[late:]
        assert rows[0] == (kept if late else "1e999", ["-1e400", 1e308])
        assert rows[1][0] == 2.5
        assert bool(cut.table.format.warnings) == (late > 0 and kept is None)


def test_a_file_of_another_kind_is_refused_alone_among_lines_of_json(tmp_path: Path) -> None:
    files = {"a.jsonl": b'{"a": 1}\n', "b.jsonl": archive("w:gz"), "c.jsonl": database(tmp_path)}
    cut = Cut(folder_with(files), ["read_json_lines"], keep_errors=True)
    assert cut.rows() == [(1,)]
    assert ["archive (tar)" in cut.errors[0], "it is a database of SQLite" in cut.errors[1]] == [True, True]


@pytest.mark.parametrize("text", ["PAR1,b\n1,2\n", "ORC\n1\n", "]\n1\n", "7z,b\n1,2\n", "PK,b\n1,2\n", "%PDF,b\n1,2\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-le"])
def test_text_that_begins_like_a_file_of_another_kind_is_read(text: str, encoding: str) -> None:
    cut = Cut(folder_with({"a.csv": text.encode(encoding)}), ["read_delimited"])
    assert len(cut.rows()) == 1
