"""Several leaders, some of them paused: everybody reads the same, and nothing that came too late."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.folder.term_log import file_of, open_term, read_term_log, spans, terms

NAME = "log"


def records(folder: Path) -> list[bytes]:
    return [payload for _, _, payload in read_term_log(folder, NAME)]


class Leaders(RuleBasedStateMachine):
    """Leaders come, write, pause, wake, write on, die at every point. Only the newest one's records may be added."""

    @initialize()
    def begin(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.accepted: list[bytes] = []
        self.unflushed: list[bytes] = []
        self.writers: list[RecordWriter] = []
        self.term = 0
        self.count = 0

    def teardown(self) -> None:
        for writer in getattr(self, "writers", []):
            writer.close()
        if hasattr(self, "temporary"):
            self.temporary.cleanup()

    def _payload(self, size: int) -> bytes:
        self.count += 1
        return f"{self.count}".encode() + b"x" * size

    @rule(gap=st.integers(1, 3))
    def another_leads(self, gap: int) -> None:
        self.term += gap
        # What the one before it has not flushed comes too late from now on.
        self.unflushed = []
        self.writers.append(open_term(self.folder, NAME, self.term))

    @rule(size=st.integers(0, 50), flush=st.booleans())
    def the_newest_writes(self, size: int, flush: bool) -> None:
        if self.writers and not self.writers[-1]._file.closed:
            payload = self._payload(size)
            self.writers[-1].append(payload)
            self.unflushed.append(payload)
            if flush:
                self.writers[-1].flush()
                self.accepted += self.unflushed
                self.unflushed = []

    @rule(which=st.integers(0, 9), size=st.integers(0, 50))
    def a_paused_one_writes_on(self, which: int, size: int) -> None:
        paused = [writer for writer in self.writers[:-1] if not writer._file.closed]
        if paused:
            writer = paused[which % len(paused)]
            writer.append(self._payload(size))
            writer.flush()

    @rule(keep=st.integers(0, 40))
    def the_newest_dies_in_the_middle_of_a_record(self, keep: int) -> None:
        if self.writers and not self.writers[-1]._file.closed:
            writer = self.writers[-1]
            writer.flush()
            self.accepted += self.unflushed
            self.unflushed = []
            with writer.path.open("ab") as file:
                file.write(b"\x30\0\0\0\1\2\3\4half a record that was never finished"[: 1 + keep % 30])
            writer.close()

    @rule(part=st.integers(0, 7))
    def one_dies_before_its_header_is_durable(self, part: int) -> None:
        self.term += 1
        self.unflushed = []
        if self.writers and not self.writers[-1]._file.closed:
            self.writers[-1].flush()
        file_of(self.folder, NAME, self.term).write_bytes(b"\x20\0\0\0\x99\x99\x99\x99"[:part])
        # The one before it is still the newest that counts; it was lost, so it writes no more.
        self.accepted = records(self.folder)
        if self.writers:
            self.writers[-1].close()

    @invariant()
    def all_that_was_accepted_is_read_and_nothing_else(self) -> None:
        assert records(self.folder) == self.accepted

    @invariant()
    def every_record_is_where_it_is_said_to_be(self) -> None:
        for term, at, payload in read_term_log(self.folder, NAME):
            frame = file_of(self.folder, NAME, term).read_bytes()[at:]
            assert frame[8 : 8 + len(payload)] == payload


TestLeaders = Leaders.TestCase
TestLeaders.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_an_empty_folder_has_no_terms(tmp_path: Path) -> None:
    assert terms(tmp_path, NAME) == []
    assert spans(tmp_path, NAME) == []
    assert records(tmp_path) == []


def test_terms_are_sorted_as_numbers_and_other_files_are_none(tmp_path: Path) -> None:
    for name in ("log.10", "log.9", "log.1", "log.tmp", "log", "other.3", "log.-1", "log.1a"):
        (tmp_path / name).touch()
    assert terms(tmp_path, NAME) == [1, 9, 10]


def test_a_term_is_taken_once(tmp_path: Path) -> None:
    open_term(tmp_path, NAME, 1).close()
    with pytest.raises(FileExistsError):
        open_term(tmp_path, NAME, 1)
    assert records(tmp_path) == []


def test_a_leader_that_wakes_is_not_heard_by_anybody_however_many_follow(tmp_path: Path) -> None:
    first = open_term(tmp_path, NAME, 1)
    first.append(b"good")
    first.sync()
    second = open_term(tmp_path, NAME, 2)
    first.append(b"late")
    first.sync()
    second.append(b"new")
    second.sync()
    third = open_term(tmp_path, NAME, 3)
    first.append(b"later")
    second.append(b"late as well")
    first.sync()
    second.sync()
    third.append(b"newest")
    third.sync()
    assert [(term, payload) for term, _, payload in read_term_log(tmp_path, NAME)] == [
        (1, b"good"), (2, b"new"), (3, b"newest"),
    ]  # fmt: skip
    for writer in (first, second, third):
        writer.close()


def test_headers_do_not_grow_with_leaders_that_came_to_nothing(tmp_path: Path) -> None:
    for term in range(1, 200):
        writer = open_term(tmp_path, NAME, term)
        if term == 5:
            writer.append(b"good")
            writer.sync()
        writer.close()
    assert file_of(tmp_path, NAME, 199).stat().st_size < 100
    assert [(term, payload) for term, _, payload in read_term_log(tmp_path, NAME)] == [(5, b"good")]


def test_a_header_that_becomes_durable_too_late_is_ignored(tmp_path: Path) -> None:
    """A leader paused between creating its file and its header; another one led meanwhile."""
    first = open_term(tmp_path, NAME, 1)
    first.append(b"a")
    first.sync()
    file_of(tmp_path, NAME, 2).touch()
    third = open_term(tmp_path, NAME, 3)
    third.append(b"b")
    third.sync()
    beside = tmp_path / "beside"
    beside.mkdir()
    late = open_term(beside, NAME, 2)
    late.append(b"late")
    late.close()
    file_of(tmp_path, NAME, 2).write_bytes(file_of(beside, NAME, 2).read_bytes())
    assert records(tmp_path) == [b"a", b"b"]
    fourth = open_term(tmp_path, NAME, 4)
    assert records(tmp_path) == [b"a", b"b"]
    for writer in (first, third, fourth):
        writer.close()


def test_a_whole_first_record_that_is_no_header_is_told(tmp_path: Path) -> None:
    writer = RecordWriter(file_of(tmp_path, NAME, 1))
    writer.append(b"this is no header")
    writer.close()
    with pytest.raises(CorruptLog, match=r"log\.1"):
        spans(tmp_path, NAME)


class Disk:
    """Knows how much of each file would survive a power cut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._durable: dict[int, int] = {}
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._sync)

    def _sync(self, fd: int) -> None:
        found = os.fstat(fd)
        self._durable[found.st_ino] = found.st_size

    def cut_power(self, folder: Path) -> None:
        """Let what was not synced be lost."""
        for path in folder.iterdir():
            os.truncate(path, self._durable.get(path.stat().st_ino, 0))


def test_what_a_leader_builds_on_is_durable_though_its_predecessor_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    killed = open_term(tmp_path, NAME, 1)
    killed.append(b"one")
    killed.sync()
    killed.append(b"two")
    killed.flush()
    successor = open_term(tmp_path, NAME, 2)
    believed = records(tmp_path)
    successor.append(b"three")
    successor.sync()
    disk.cut_power(tmp_path)
    assert file_of(tmp_path, NAME, 1).stat().st_size == killed.size
    assert records(tmp_path) == [*believed, b"three"] == [b"one", b"two", b"three"]
    killed.close()
    successor.close()


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_log_that_lacks_what_was_accepted_is_not_read_as_if_it_had_never_been(tmp_path: Path, damage: str) -> None:
    for term in (1, 2):
        writer = open_term(tmp_path, NAME, term)
        writer.append(b"record")
        writer.sync()
        writer.close()
    path = file_of(tmp_path, NAME, 1)
    match damage:
        case "cut":
            os.truncate(path, path.stat().st_size - 1)
        case "gone":
            path.unlink()
        case "other":
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptLog, match=r"log\.1 can only be read up to byte"):
        records(tmp_path)
