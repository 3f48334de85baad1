"""Rows of row groups that are cut: what is read by pages is what pyarrow reads, however the file was written."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from parallelrun_worker.tables import parquet_reader
from parallelrun_worker.tables.compact_protocol import BINARY, I32, I64, LIST, STRUCT, Decoder, encode
from parallelrun_worker.tables.parquet_pages import RowGroup
from parallelrun_worker.tables.parquet_reader import ParquetReader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 3000
NESTED = ["list", "struct", "map"]
WRITERS: list[dict[str, Any]] = [
    {}, {"data_page_version": "2.0", "compression": "zstd"}, {"use_dictionary": False, "compression": "gzip"},
    {"version": "1.0", "use_deprecated_int96_timestamps": True}, {"store_schema": False, "compression": "none"},
    {"write_page_checksum": True, "compression": "brotli", "write_statistics": False}, {"compression": "lz4"},
    {"use_byte_stream_split": ["float", "double"], "use_dictionary": ["text"], "write_page_index": True},
    {"column_encoding": {"int": "DELTA_BINARY_PACKED", "unique": "DELTA_BYTE_ARRAY"}, "use_dictionary": False},
]  # fmt: skip


def rows_of(draw: random.Random) -> Any:
    texts = [draw.choice(["a", "é" * 9, "", None]) for _ in range(ROWS)]
    moments = pa.array(range(ROWS)).cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    decimals = [None if draw.random() < 0.1 else Decimal(draw.randint(-99, 99)) for _ in range(ROWS)]
    ints = [draw.choice([None, 1, 7]) for _ in range(ROWS)]
    unique = [f"text {number}" * draw.randint(0, 3) for number in range(ROWS)]
    columns = {
        "int": pa.array([draw.randint(-(2**40), 2**40) for _ in range(ROWS)]), "text": texts, "unique": unique,
        "float": pa.array([draw.random() for _ in range(ROWS)], pa.float32()), "gaps": ints,
        "double": [draw.random() if number < ROWS / 2 else None for number in range(ROWS)],
        "category": pa.array(texts).dictionary_encode(), "large": pa.array(unique, pa.large_string()),
        "bool": [draw.random() < 0.5 for _ in range(ROWS)], "late": [None] * (ROWS - 1) + ["x"],
        "date": pa.array(range(ROWS), pa.int32()).cast(pa.date32()), "at": moments,
        "zoned": moments.cast(pa.timestamp("us", "Europe/Berlin")), "decimal": pa.array(decimals, pa.decimal128(9, 2)),
        "fixed": pa.array([draw.randbytes(5) for _ in range(ROWS)], pa.binary(5)), "null": pa.nulls(ROWS),
        "list": [[text] * draw.randint(0, 3) for text in texts], "struct": [{"a": text} for text in texts],
        "map": pa.array([[("k", number)] for number in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    }  # fmt: skip
    table = pa.table(columns)
    required = pa.field("int", pa.int64(), nullable=False, metadata={"unit": "m"})
    return table.cast(table.schema.set(0, required))


def decoded(table: Any) -> Any:
    """The table with texts instead of a dictionary, of which the order of values differs by rows."""
    return table.cast(
        pa.schema(
            [field.with_type(pa.string()) if field.name == "category" else field for field in table.schema],
            table.schema.metadata,
        )
    )


@pytest.fixture
def _by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no row group taken for a small one, of which all is read."""
    monkeypatch.setattr(parquet_reader, "_SMALL_BYTES", 0)


@pytest.mark.usefixtures("_by_pages")
def test_rows_of_cut_row_groups_are_those_that_pyarrow_reads(tmp_path: Path) -> None:
    for options in WRITERS:
        _compare(tmp_path, options)


def _compare(tmp_path: Path, options: dict[str, Any]) -> None:
    draw, path = random.Random(str(options)), str(tmp_path / "a.parquet")
    pq.write_table(rows_of(draw), path, row_group_size=2000, data_page_size=700, write_batch_size=100, **options)
    whole, reader = pq.read_table(path, partitioning=None), ParquetReader()
    cuts = sorted({0, ROWS, 1999, 2000, 2001, *(draw.randint(0, ROWS) for _ in range(12))})
    for start, end in [*pairwise(cuts), (2990, 2995), (5, 9), (1500, 2500)]:
        expected = whole.slice(start, end - start)
        assert decoded(reader.read((path, start, end))).equals(decoded(expected), check_metadata=True)
        found, repeating = reader.read_for_frame((path, start, end))
        assert decoded(found.cast(expected.schema)).equals(decoded(expected)), repeating
        names = draw.sample(whole.column_names, 3)
        some = reader.read((path, start, end), names)
        assert set(some.column_names) == set(names)
        assert decoded(some).equals(decoded(expected.select(some.column_names)))


def test_all_but_nested_columns_are_read_by_their_pages(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.parquet", rows_of(random.Random(0))
    for options in WRITERS:
        pq.write_table(rows, path, data_page_size=700, write_batch_size=100, **options)
        with path.open("rb") as file, pq.ParquetFile(path) as parquet:
            table = RowGroup.of(file, parquet, 0).read(file, range(2990, 2995), rows.column_names)
        # There are two codecs of that name, and pyarrow doesn't tell which one a column has.
        expected = [] if options.get("compression") == "lz4" else rows.drop_columns(NESTED).column_names
        assert table.column_names == expected, options


class Counted:
    """Opens files, and counts the bytes that are read of them."""

    def __init__(self) -> None:
        self.byte_count = 0

    def __call__(self, path: str, mode: str) -> Any:
        file = open(path, mode, buffering=0)  # noqa: SIM115 - the caller closes it
        read = file.read

        def counted(size: int = -1) -> bytes:
            content: bytes = read(size)
            self.byte_count += len(content)
            return content

        file.read = counted  # type: ignore[method-assign]
        return file


@pytest.mark.usefixtures("_by_pages")
def test_the_last_rows_of_a_row_group_cost_their_pages_and_not_those_before(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    draw = random.Random(0)
    pq.write_table(pa.table({name: [draw.random() for _ in range(200_000)] for name in "abc"}), path)
    counted = Counted()
    assert len(ParquetReader(counted).read((str(path), 199_000, 200_000))) == 1000
    assert 0 < counted.byte_count < path.stat().st_size / 10
    texts = [f"t{at % 9}" for at in range(20_000)] + [f"text {at * 7919}" for at in range(20_000)]
    pq.write_table(pa.table({"s": texts}), path, row_group_size=20_000)
    reader = ParquetReader()
    for start, end in [(0, 5000), (15_000, 25_000)]:  # texts repeat in the first row group only
        rows, _ = reader.read_for_frame((str(path), start, end))
        assert rows.column("s").to_pylist() == texts[start:end]


def test_small_row_groups_are_read_once_and_each_by_itself(tmp_path: Path) -> None:
    path, counted = tmp_path / "a.parquet", Counted()
    table = rows_of(random.Random(1))
    pq.write_table(table, path, row_group_size=1000)
    whole, reader = pq.read_table(path), ParquetReader(counted)
    for columns in (None, ["list", "int"], ["int"]):
        for start in range(0, ROWS, 100):
            expected = whole.slice(start, 100)
            assert decoded(reader.read((str(path), start, start + 100), columns)).equals(
                decoded(expected if columns is None else expected.select(columns))
            )
    assert counted.byte_count < 4 * path.stat().st_size


@pytest.mark.usefixtures("_by_pages")
def test_nested_rows_are_decoded_once_by_a_worker_that_goes_forward(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    draw = random.Random(0)
    pq.write_table(pa.table({"list": [[draw.random()] * 9 for _ in range(50_000)]}), path, use_dictionary=False)
    size, counted = path.stat().st_size, Counted()
    reader = ParquetReader(counted)
    for start in range(0, 50_000, 1000):
        assert len(reader.read((str(path), start, start + 1000))) == 1000
    assert counted.byte_count < 50 * 70_000 + 2 * size  # a footer and its surroundings each time
    assert reader.read((str(path), 0, 10)).equals(pq.read_table(path).slice(0, 10))


def test_a_damaged_page_fails_the_mini_batches_that_have_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"a": range(10_000)})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_page_checksum=True, data_page_size=8000)
    content = bytearray(path.read_bytes())
    at = content.index((500).to_bytes(8, "little"))
    content[at] ^= 1
    path.write_bytes(content)
    reader = ParquetReader()
    assert reader.read((str(path), 9000, 9500)).equals(table.slice(9000, 500))
    with pytest.raises(OSError, match="CRC"):
        reader.read((str(path), 490, 510))


def test_a_file_that_was_replaced_is_read_as_it_is_now(tmp_path: Path) -> None:
    path, reader = tmp_path / "a.parquet", ParquetReader()
    for first in (0, 5000):
        table = pa.table({"a": range(first, first + 5000), "list": [[n] for n in range(first, first + 5000)]})
        pq.write_table(table, tmp_path / "new")
        (tmp_path / "new").rename(path)
        assert reader.read((str(path), 100, 200)).equals(table.slice(100, 100))


def test_structures_of_the_compact_protocol_are_read_as_they_were_written() -> None:
    inner = encode([(1, I32, -1), (15, I64, 2**40)])
    fields = [
        (1, I64, -(2**62)),
        (3, BINARY, b"x" * 300),
        (4, LIST, (I32, list(range(20)))),
        (5, LIST, (STRUCT, [inner])),
    ]
    decoded = Decoder(encode(fields)).struct()
    assert decoded == {1: -(2**62), 3: b"x" * 300, 4: list(range(20)), 5: [{1: -1, 15: 2**40}]}


def test_bytes_that_are_no_structure_are_refused() -> None:
    for data in (b"", b"\x15", b"\x18\x7fabc", b"\x1d\x00", b"\x1c" * 99, b"\x15" + b"\xff" * 99):
        with pytest.raises(ValueError, match=r"ends|type|without"):
            Decoder(data).struct()
