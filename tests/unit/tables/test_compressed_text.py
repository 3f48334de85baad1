"""Compressed text: recognised with and without an ending, read exactly or refused, never taken for text."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import struct
import zipfile
from collections.abc import Callable

import msgspec
import pytest

from parallelrun_worker.tables import unpacking
from parallelrun_worker.tables.crc32c import masked_crc32c
from parallelrun_worker.tables.table import Table
from tests.unit.tables.cutting import Cut, folder_with, values

pa = pytest.importorskip("pyarrow")


def snappy(content: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(content))


def checksum(content: bytes) -> bytes:
    """The checksum of a chunk, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def framed_snappy(content: bytes) -> bytes:
    parts = [content[at : at + 300] for at in range(0, len(content), 300)]
    body = b""
    for number, part in enumerate(parts):
        packed = part if number % 2 else snappy(part)
        body += bytes([number % 2]) + (len(packed) + 4).to_bytes(3, "little") + checksum(part) + packed
    return b"\xff\x06\0\0sNaPpY" + body


def hadoop_snappy(content: bytes) -> bytes:
    blocks = [content[at : at + 500] for at in range(0, len(content), 500)]
    found = b""
    for block in blocks:
        parts = [snappy(block[:200]), snappy(block[200:])] if len(block) > 200 else [snappy(block)]
        found += struct.pack(">I", len(block)) + b"".join(struct.pack(">I", len(part)) + part for part in parts)
    return found


def zipped(content: bytes, *others: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.csv", *others):
            archive.writestr(name, content)
    return file.getvalue()


def zst(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped, "zst": zst, "snappy": framed_snappy,
}  # fmt: skip
SIZES: tuple[int | str, ...] = (1 << 20, 100, "rows:7")
LINES = [f"{number},t {number} é" for number in range(2, 300)]
ROWS = [(number, f"t {number} é") for number in range(2, 300)]
CSV = "\n".join(["id,text", *LINES]) + "\n"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ending", ["", ".csv", ".csv.{}"])
@pytest.mark.parametrize("compression", PACKERS)
def test_compressed_text_is_read_exactly_whatever_its_name(compression: str, ending: str, size: int | str) -> None:
    options = {"support_multi_line": size == 100}
    for encoding in ("utf-8", "utf-16"):
        content = PACKERS[compression](CSV.encode(encoding))
        cut = Cut(folder_with({f"a{ending.format(compression)}": content}), [{"read_delimited": options}], size)
        assert cut.rows() == ROWS
        if isinstance(size, str):
            assert [len(frame) for frame in cut.frames[:-1]] == [7] * (len(cut.frames) - 1)
        elif not options["support_multi_line"]:
            assert [len(frame) for frame in cut.frames if len(frame)] == [len(ROWS)]


@pytest.mark.parametrize("columns_by", ["name", "position"])
@pytest.mark.parametrize("compression", PACKERS)
def test_compressed_text_has_its_header_whichever_mini_batch_a_worker_reads_first(
    compression: str, columns_by: str
) -> None:
    folder = folder_with({"a.csv": PACKERS[compression](CSV.encode())})
    cut = Cut(folder, [{"read_delimited": {"columns_by": columns_by}}], 100)
    pieces = [(os.fsdecode(piece.path), *piece.rest) for piece in cut.pieces]
    assert len(pieces) > 1
    table = Table(json.loads(msgspec.json.encode(cut.plan)), str(folder / "schema"))
    frames = [table.read([piece]) for piece in reversed(pieces)]
    assert [len(frame) for frame in frames[:-1]] == [0] * (len(pieces) - 1)
    assert [*frames[-1].columns] == ["id", "text"]
    assert values(frames[-1]) == ROWS


@pytest.mark.parametrize("compression", PACKERS)
def test_compressed_json_lines_are_read_exactly(compression: str) -> None:
    text = "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in ROWS)
    for size in SIZES:
        content = PACKERS[compression](text.encode())
        assert Cut(folder_with({"a.jsonl": content, "b": text}), ["read_json_lines"], size).rows() == ROWS * 2


@pytest.mark.parametrize("at", [20, 1200])
def test_framed_snappy_with_another_byte_is_refused_by_its_checksum(at: int) -> None:
    packed = bytearray(framed_snappy(CSV.encode()))
    chunk = packed.index(b"\x01", at)  # of the second or a later chunk, which is stored as it is
    while packed[chunk + 1 : chunk + 4] != (304).to_bytes(3, "little"):
        chunk = packed.index(b"\x01", chunk + 1)
    packed[chunk + 50] ^= 1
    with pytest.raises(ValueError, match="the checksum of a chunk is another one"):
        unpacking.unpack(bytes(packed), "snappy")


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 128, 129, 1000, 5000, 65536])
def test_checksum_of_snappy_is_that_of_its_definition(length: int) -> None:
    content = random.Random(length).randbytes(length)
    assert masked_crc32c(content).to_bytes(4, "little") == checksum(content)


@pytest.mark.parametrize("pack", [hadoop_snappy, snappy, framed_snappy])
def test_each_form_of_snappy_is_read_by_its_ending(pack: Callable[[bytes], bytes]) -> None:
    assert Cut(folder_with({"part-0.snappy": pack(CSV.encode())}), ["read_delimited"]).rows() == ROWS


@pytest.mark.parametrize("compression", PACKERS)
def test_compressed_text_that_is_cut_off_or_damaged_fails_by_its_name(compression: str) -> None:
    whole = PACKERS[compression](CSV.encode())
    draw = random.Random(5)
    for end in [len(whole) // 2, len(whole) - 9]:
        folder = folder_with({"bad.csv": whole[:end], "good.csv": CSV})
        for size in (1 << 20, "rows:50"):
            cut = Cut(folder, ["read_delimited"], size, keep_errors=True)
            assert cut.rows() == ROWS
            assert [f"bad.csv: this {compression} file is damaged" in error for error in cut.errors] == [True]
        cut = Cut(folder, ["read_delimited", {"skip": 2}], keep_errors=True)
        assert cut.rows() == ROWS[2:]
        assert [warning.kind for warning in cut.warnings] == ["uncounted"]
    for _ in range(20):  # no checksum finds each of them in Snappy, whose frames have one that nobody has to check
        at = draw.randrange(20, len(whole) - 20)
        damaged = whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
        cut = Cut(folder_with({"bad.csv": damaged, "good.csv": CSV}), ["read_delimited"], keep_errors=True)
        assert cut.errors or compression in ("snappy", "zst") or cut.rows() == ROWS * 2


def test_several_members_of_one_file_are_one_text() -> None:
    half = len(CSV) // 2
    for pack in (gzip.compress, bz2.compress, lzma.compress, zst):
        content = pack(CSV[:half].encode()) + pack(CSV[half:].encode())
        assert Cut(folder_with({"a.csv": content}), ["read_delimited"]).rows() == ROWS


SKIPPABLE = b"\x50*M\x18\x04\0\0\0abcd"


@pytest.mark.parametrize(
    "content",
    [
        SKIPPABLE + zst(CSV.encode()), SKIPPABLE * 50 + zst(CSV.encode()) + SKIPPABLE.replace(b"P", b"_"),
        bz2.compress(b"") + bz2.compress(CSV.encode()), gzip.compress(b"") + gzip.compress(CSV.encode()) + bytes(512),
        lzma.compress(CSV.encode()) + bytes(4), b"PK00" + zipped(CSV.encode()),
    ],
    ids=["a frame without content", "many", "an empty bz2", "an empty gz, and zeros", "xz with zeros", "a split zip"],
)  # fmt: skip
def test_frames_without_content_and_padding_are_no_rows(content: bytes) -> None:
    assert unpacking.compression_of(content[: unpacking.MOST_MAGIC_BYTES], "a.csv")
    assert Cut(folder_with({"a.csv": content}), ["read_delimited"]).rows() == ROWS


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zst"])
def test_what_follows_a_compressed_text_and_is_none_is_refused(compression: str) -> None:
    with pytest.raises(ValueError, match=f"this {compression} file is damaged or cut off"):
        unpacking.unpack(PACKERS[compression](CSV.encode()) + b"garbage", compression)


def test_a_zip_of_several_files_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        ValueError, match=r"a\.zip: this zip file has 2 files, and is read if it has one; unpack it first"
    ):
        Cut(folder_with({"a.zip": zipped(CSV.encode(), "b.csv")}), ["read_delimited"])
    mac = zipped(CSV.encode(), "__MACOSX/._a.csv")
    assert Cut(folder_with({"a.zip": mac}), ["read_delimited"]).rows() == ROWS


@pytest.mark.parametrize("compression", PACKERS)
def test_a_file_beyond_the_limit_is_refused_unless_the_job_allows_it(compression: str) -> None:
    folder = folder_with({"a.csv": PACKERS[compression](CSV.encode())})
    limited = [{"read_delimited": {"unpacked_limit": 1000}}]
    with pytest.raises(
        ValueError,
        match=rf"a\.csv: unpacked, .* has {len(CSV.encode()):,} bytes, and the limit is 1,000; unpack it first",
    ) as refused:
        Cut(folder, limited)
    (advice,) = re.findall(r"unpacked_limit: (\w+),", str(refused.value))
    assert Cut(folder, [{"read_delimited": {"unpacked_limit": advice}}]).rows() == ROWS


def test_a_bomb_is_refused_before_it_fills_the_memory() -> None:
    content = bz2.compress(b"5\n" * (20 << 20))
    with pytest.raises(ValueError, match=r"becomes over 1,000 times larger"):
        unpacking.unpack(content, "bz2", 1 << 40)


def test_ordinary_text_is_never_taken_for_compressed() -> None:
    for head in (b"BZh,a\n", b"PK,b\n", b"id,x\n", b"", b"BZh9"):
        assert unpacking.compression_of(head, "a.csv.gz") == ""
