"""The output: committed segments in mini-batch order, verified, whole or not there at all."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import tempfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_concatenator import output as output_module
from parallelrun_concatenator import parts as parts_module
from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import Segment, SegmentTable
from parallelrun_core.errors import Conflict, CorruptLog
from parallelrun_core.folder.decisions import NAME as DECISIONS
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.wire.outcome import Outcome, encode, encode_list
from tests.unit.core.factories import failed, names_in, open_descriptors, outcome


class Job:
    """A job's decisions and part files, made from rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = folder / "parts"
        self.parts.mkdir(parents=True)
        self.target = folder / "outputs" / "out.txt"
        self.outcomes: list[Outcome] = []

    def commit(self, mini_batch: int, rows: bytes, part: str = "a") -> None:
        with (self.parts / part).open("ab") as file:
            offset = file.tell()
            file.write(rows)
        self.outcomes.append(
            outcome(mini_batch, part=part if rows else "", offset=offset, length=len(rows), crc=zlib.crc32(rows))
        )

    def write(self) -> None:
        writer = DecisionWriter(self.folder, 1)
        writer.add(self.outcomes)
        writer.sync()
        writer.close()

    def merge(self, earlier: Callable[[], Collection[str]] = tuple) -> bytes:
        segments = SegmentTable(self.folder).in_order()
        merged = merge(segments, self.parts, str(self.target), lambda _: None, before_publishing=earlier)
        data = self.target.read_bytes()
        assert merged.length == len(data)
        assert merged.sha256 == hashlib.sha256(data).hexdigest()
        assert names_in(self.target.parent) == [self.target.name]
        return data


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@given(
    rows=st.lists(st.binary(max_size=30), max_size=40),
    seed=st.integers(0, 10**6),
    parts=st.integers(1, 5),
    window=st.integers(0, 60),
    at_once=st.integers(1, 10),
)
@settings(deadline=None, max_examples=40)
def test_rows_come_in_mini_batch_order_whatever_order_they_were_committed_in(
    rows: list[bytes], seed: int, parts: int, window: int, at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_module, "OPEN_PARTS", 2)
        patch.setattr(parts_module, "WINDOW_BYTES", window)
        patch.setattr(parts_module, "SMALL_BYTES", min(window, 20))
        patch.setattr(parts_module, "AT_ONCE", at_once)
        patch.setattr(output_module, "BLOCK_BYTES", 3)
        job = Job(Path(name))
        order = random.Random(seed)
        numbers = list(range(len(rows)))
        order.shuffle(numbers)
        for number in numbers:
            job.commit(number, rows[number], f"part{order.randrange(parts)}")
        job.write()
        first = job.merge()
        assert first == b"".join(rows)
        assert job.merge() == first
        table = SegmentTable(job.folder)
        assert table.bytes == len(first)
        assert len(table) == sum(bool(each) for each in rows)


def test_failed_mini_batches_and_second_decisions_have_no_rows(job: Job) -> None:
    job.commit(2, b"two\n")
    job.outcomes.append(failed(1, part="a", offset=0, length=4, crc=zlib.crc32(b"two\n")))
    job.commit(2, b"two again\n")
    job.commit(0, b"zero\n")
    # A second decision can stand in a log only if a leader put it there without asking; it counts for nothing.
    log = open_term(job.folder, DECISIONS, 1)
    log.append(encode_list([encode(each) for each in job.outcomes]))
    log.close()
    assert job.merge() == b"zero\ntwo\n"


def test_a_retry_by_the_user_replaces_the_failure(job: Job) -> None:
    job.commit(1, b"one\n")
    job.outcomes.append(failed(0))
    job.outcomes.append(outcome(0, generation=1, part="a", offset=0, length=4, crc=zlib.crc32(b"one\n")))
    job.write()
    assert job.merge() == b"one\none\n"


def no_links(made: Path, _: Path) -> None:
    raise OSError(errno.EPERM, "this file system has no links", str(made))


@pytest.fixture(params=[os.link, no_links], ids=["links", "no links"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", request.param)


@pytest.mark.usefixtures("file_system")
def test_the_output_of_another_job_is_not_replaced_even_at_the_last_moment(job: Job) -> None:
    job.commit(0, b"ours\n")
    job.write()

    def another_ends() -> list[str]:
        job.target.write_bytes(b"theirs\n")
        return []

    with pytest.raises(Conflict, match="existing files are never overwritten"):
        job.merge(another_ends)
    assert job.target.read_bytes() == b"theirs\n"
    assert names_in(job.target.parent) == [job.target.name]
    job.target.unlink()
    assert job.merge() == b"ours\n"


@pytest.mark.usefixtures("file_system")
def test_an_earlier_output_of_the_same_job_is_replaced(job: Job) -> None:
    job.target.parent.mkdir()
    job.target.write_bytes(b"before\n")
    job.commit(0, b"before\n")
    job.commit(1, b"after\n")
    job.write()
    assert job.merge(lambda: [hashlib.sha256(b"before\n").hexdigest()]) == b"before\nafter\n"


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("nowhere")], ids=["folder", "link"])
def test_whatever_is_there_stays_there(job: Job, make: Callable[[Path], None]) -> None:
    job.target.parent.mkdir()
    make(job.target)
    job.write()
    with pytest.raises(Conflict):
        job.merge()
    assert job.target.is_dir() or job.target.is_symlink()
    assert names_in(job.target.parent) == [job.target.name]


def test_a_link_whose_answer_was_lost_is_no_conflict(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file server may have done it, and answer a repeated request that the name is taken."""
    link = os.link

    def link_twice(made: Path, target: Path) -> None:
        link(made, target)
        link(made, target)

    job.commit(0, b"zero\n")
    job.write()
    monkeypatch.setattr(os, "link", link_twice)
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("it is read again for nothing"))
    assert job.merge() == b"zero\n"


def test_nothing_to_merge_gives_an_empty_file(job: Job) -> None:
    job.write()
    assert job.merge() == b""


def spoil_byte(part: Path) -> None:
    data = bytearray(part.read_bytes())
    data[5] ^= 1
    part.write_bytes(data)


def cut_off(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-1])


def empty(part: Path) -> None:
    part.write_bytes(b"")


@pytest.mark.parametrize("spoil", [spoil_byte, cut_off, empty, lambda part: part.unlink()])
def test_rows_that_are_not_what_was_committed_are_told_and_nothing_is_published(job: Job, spoil: object) -> None:
    assert callable(spoil)
    job.commit(0, b"zero\n")
    job.commit(1, b"one\n")
    job.write()
    before = job.merge()
    spoil(job.parts / "a")
    with pytest.raises((CorruptLog, OSError)):
        job.merge(lambda: [hashlib.sha256(before).hexdigest()])
    # The output of an earlier time stays, whole, and nothing lies beside it.
    assert job.target.read_bytes() == before
    assert names_in(job.target.parent) == ["out.txt"]


@pytest.mark.parametrize(
    "gone, told", [(12, "No such file or directory: .*/parts/b"), (16, "mini-batch 14 in parts/a")]
)
def test_of_rows_that_are_read_together_the_first_with_a_problem_are_told(job: Job, gone: int, told: str) -> None:
    for number in range(20):
        job.commit(number, b"number %d\n" % number, "b" if number == gone else "a")
    job.write()
    (job.parts / "b").unlink()
    with (job.parts / "a").open("r+b") as part:
        for number in (14, 18):
            part.seek(job.outcomes[number].offset)
            part.write(b"N")
    with pytest.raises((CorruptLog, FileNotFoundError), match=told):
        job.merge()
    assert names_in(job.target.parent) == []


def test_a_disk_that_takes_a_little_at_a_time_gets_it_all(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        job.commit(number, b"%d\n" % number * 3)
    job.write()
    whole = job.merge()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    monkeypatch.setattr(output_module, "BLOCK_BYTES", 9)
    assert job.merge() == whole


def test_a_disk_that_is_full_publishes_nothing(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.commit(0, b"zero\n")
    job.write()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        job.merge()
    assert names_in(job.target.parent) == []


def test_the_target_appears_only_whole(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        job.commit(number, b"%d\n" % number)
    job.write()
    monkeypatch.setattr(output_module, "BLOCK_BYTES", 2)
    seen: list[bool] = []
    merge(SegmentTable(job.folder).in_order(), job.parts, str(job.target), lambda _: seen.append(job.target.exists()))
    assert len(seen) > 5
    assert not any(seen[:-1])
    assert seen[-1]


def test_two_at_the_same_time_do_not_disturb_each_other(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two containers on one volume may well have the same process id."""
    for number in range(20):
        job.commit(number, b"%d\n" % number)
    job.write()
    monkeypatch.setattr(output_module, "BLOCK_BYTES", 5)
    inner: list[str] = []

    def another_begins(_: int) -> None:
        if not inner:
            inner.append("begun")
            inner.append(merge(SegmentTable(job.folder).in_order(), job.parts, str(job.target), lambda _: None).sha256)

    outer = merge(SegmentTable(job.folder).in_order(), job.parts, str(job.target), another_begins)
    assert inner[1] == outer.sha256
    assert hashlib.sha256(job.target.read_bytes()).hexdigest() == outer.sha256
    assert names_in(job.target.parent) == [job.target.name]


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127])
def test_a_name_as_long_as_names_may_be_can_be_published(job: Job, name: str) -> None:
    job.commit(0, b"zero\n")
    job.write()
    job.target = job.target.with_name(name)
    assert job.merge() == b"zero\n"


def test_no_descriptor_stays_open_however_many_parts_there_are(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "OPEN_PARTS", 5)
    for number in range(300):
        job.commit(number, b"%d\n" % number, f"part{number}")
    job.write()
    before = len(open_descriptors())
    assert job.merge() == b"".join(b"%d\n" % number for number in range(300))
    assert len(open_descriptors()) == before


def test_a_segment_is_read_whole_however_little_comes_at_once(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call reads no more than 2 GiB less a page; here no more than 1,000 bytes."""
    data = random.Random(1).randbytes(100_000)
    (job.parts / "a").write_bytes(data)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, offset: pread(fd, min(length, 1000), offset))
    parts = parts_module.PartFiles(job.parts)
    assert parts.read(Segment(0, "a", 100, 50_000, zlib.crc32(data[100:50_100]), 1)) == data[100:50_100]
    with pytest.raises(CorruptLog):
        parts.read(Segment(0, "a", 60_000, 50_000, zlib.crc32(data[60_000:]), 1))
    parts.close()


def test_a_segment_that_lies_outside_its_part_is_told(job: Job) -> None:
    (job.parts / "a").write_bytes(b"0123456789")
    for segment in (
        Segment(0, "a", 8, 5, zlib.crc32(b"89"), 1), Segment(0, "a", 100, 1, 0, 1), Segment(0, "a", 0, 3, 1, 1),
    ):  # fmt: skip
        with pytest.raises(CorruptLog, match="mini-batch 0"):
            merge([segment], job.parts, str(job.target), lambda _: None)
