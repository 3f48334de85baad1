"""Whatever happens to a record log, a reader gets a prefix of what was written, never anything else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_core.folder.damage import FRAME
from parallelrun_core.folder.record_log import RecordReader, RecordWriter, read_records
from tests.unit.core.factories import open_descriptors

payloads = st.lists(st.binary(max_size=40) | st.binary(min_size=300, max_size=400), max_size=8)


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder for each example."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def write(path: Path, records: list[bytes]) -> bytes:
    writer = RecordWriter(path)
    for record in records:
        writer.append(record)
    writer.close()
    return path.read_bytes()


def read(path: Path) -> list[bytes]:
    return [payload for _, payload in read_records(path)]


@given(records=payloads)
@settings(deadline=None, max_examples=50)
def test_what_was_appended_is_read_with_its_offsets(records: list[bytes]) -> None:
    with folder() as where:
        writer = RecordWriter(where / "log")
        offsets = [writer.append(record) for record in records]
        writer.sync()
        assert writer.size == (where / "log").stat().st_size
        following = [*offsets[1:], writer.size] if records else []
        assert list(read_records(where / "log")) == list(zip(following, records, strict=True))
        for at, offset in enumerate(offsets):
            assert [payload for _, payload in read_records(where / "log", start=offset)] == records[at:]
            assert [payload for _, payload in read_records(where / "log", end=offset)] == records[:at]
        writer.close()


@given(records=payloads, data=st.data())
@settings(deadline=None, max_examples=100)
def test_a_file_that_was_cut_anywhere_gives_a_prefix(records: list[bytes], data: st.DataObject) -> None:
    with folder() as where:
        whole = write(where / "log", records)
        size = data.draw(st.integers(0, len(whole)))
        (where / "cut").write_bytes(whole[:size])
        found = read(where / "cut")
        assert found == records[: len(found)]
        assert sum(FRAME.size + len(payload) for payload in records[: len(found) + 1]) > size or found == records


@given(records=st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=6), data=st.data())
@settings(deadline=None, max_examples=150)
def test_a_bit_that_flips_anywhere_ends_the_log_there(records: list[bytes], data: st.DataObject) -> None:
    with folder() as where:
        whole = bytearray(write(where / "log", records))
        at = data.draw(st.integers(0, len(whole) - 1))
        bit = data.draw(st.integers(0, 7))
        if at % 4 == 3 and bit > 4:
            bit = 0  # a length of gigabytes is tried on its own, below
        whole[at] ^= 1 << bit
        (where / "flipped").write_bytes(whole)
        before = 0
        intact = 0
        for record in records:
            before += FRAME.size + len(record)
            if before > at:
                break
            intact += 1
        assert read(where / "flipped") == records[:intact]


def test_a_length_of_gigabytes_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(FRAME.pack(0xFFFF_FFFF, 0) + b"x" * 100)
    assert read(tmp_path / "log") == []


@given(records=payloads, zeros=st.integers(1, 64))
@example(records=[], zeros=8)
@settings(deadline=None, max_examples=50)
def test_zeros_behind_the_last_record_are_no_records(records: list[bytes], zeros: int) -> None:
    """After a power cut, a file may be longer than what was written to it: the rest reads as zeros."""
    with folder() as where:
        whole = write(where / "log", records)
        (where / "log").write_bytes(whole + bytes(zeros))
        assert read(where / "log") == records


@given(records=payloads, rest=st.binary(max_size=40))
@settings(deadline=None, max_examples=50)
def test_garbage_behind_the_last_record_is_no_record(records: list[bytes], rest: bytes) -> None:
    with folder() as where:
        whole = write(where / "log", records)
        (where / "log").write_bytes(whole + b"\x01\0\0\0\xff\xff\xff\xff" + rest)
        assert read(where / "log") == records


@given(records=payloads, steps=st.lists(st.integers(1, 200), max_size=40))
@settings(deadline=None, max_examples=60)
def test_a_reader_follows_a_file_that_grows_by_any_steps(records: list[bytes], steps: list[int]) -> None:
    with folder() as where:
        whole = write(where / "whole", records)
        path = where / "growing"
        path.touch()
        reader = RecordReader(path)
        found: list[bytes] = []
        at = 0
        for step in [*steps, len(whole)]:
            with path.open("ab") as file:
                file.write(whole[at : at + step])
            at += step
            while (payload := reader.read()) is not None:
                found.append(payload)
            assert found == records[: len(found)]
            assert reader.at == sum(FRAME.size + len(payload) for payload in found)
        assert found == records
        reader.close()


def test_records_larger_than_the_read_ahead_are_read(tmp_path: Path) -> None:
    records = [os.urandom(size) for size in (10, 1 << 18, (1 << 18) - 8, 3, 1 << 19, 0, 1)]
    write(tmp_path / "log", records)
    assert read(tmp_path / "log") == records


def test_a_frame_that_crosses_the_read_ahead_at_any_place_is_read(tmp_path: Path) -> None:
    for shift in range(12):
        records = [b"a" * ((1 << 18) - FRAME.size - shift), b"bcdef", b"g"]
        write(tmp_path / f"log{shift}", records)
        assert read(tmp_path / f"log{shift}") == records


def test_half_a_frame_that_was_seen_too_early_is_read_again(tmp_path: Path) -> None:
    """On a network file system a reader may see the new size before the bytes: zeros for a moment."""
    payload = b"payload"
    writer = RecordWriter(tmp_path / "whole")
    writer.append(payload)
    writer.close()
    whole = (tmp_path / "whole").read_bytes()
    path = tmp_path / "log"
    path.write_bytes(whole[: FRAME.size] + bytes(len(payload)))
    reader = RecordReader(path)
    assert reader.read() is None
    path.write_bytes(whole)
    assert reader.read() == payload
    reader.close()


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    assert read(tmp_path / "missing") == []
    reader = RecordReader(tmp_path / "missing")
    assert reader.read() is None
    reader.close()
    reader.close()


def test_a_file_has_one_writer_for_its_whole_life(tmp_path: Path) -> None:
    RecordWriter(tmp_path / "log").close()
    with pytest.raises(FileExistsError):
        RecordWriter(tmp_path / "log")


def test_what_was_flushed_is_seen_by_others(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "log")
    writer.append(b"one")
    assert read(tmp_path / "log") == []
    writer.flush()
    assert read(tmp_path / "log") == [b"one"]
    writer.close()


def test_readers_leave_no_descriptor_open(tmp_path: Path) -> None:
    write(tmp_path / "log", [b"one", b"two"])
    before = len(open_descriptors())
    for _ in range(20):
        assert next(read_records(tmp_path / "log")) == (FRAME.size + 3, b"one")
    assert len(open_descriptors()) == before
