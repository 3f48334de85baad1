"""What a disk has damaged is told from where a writer died, said, and passed over; the rest counts as before."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.documents import schema
from parallelrun_core.documents.schema import decode, encode
from parallelrun_core.errors import CorruptLog, NewerSchema
from parallelrun_core.folder.damage import FRAME, Damage
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions, read_outcomes
from parallelrun_core.folder.manifest import ManifestWriter, last_closing, read_closing
from parallelrun_core.folder.record_log import RecordWriter, read_records
from parallelrun_core.folder.term_log import check_whole, file_of, open_term, read_term_log, spans
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import LostRows, Outcome, RowsPlace
from parallelrun_master.ledger.retry_log import RetryLog
from tests.unit.core.factories import failed, outcome

RECORDS = [b'["%d", "%s"]' % (number, b"x" * 20) for number in range(10)]


def log_of(path: Path, records: list[bytes]) -> list[int]:
    """Write them; returns where each begins."""
    with closing(RecordWriter(path)) as writer:
        return [writer.append(record) for record in records]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_what_follows_damage_is_read(tmp_path: Path) -> None:
    check_damage_is_passed_over(tmp_path)


def check_damage_is_passed_over(folder: Path) -> None:
    for where in ("length", "crc", "payload"):
        path, damage = folder / where, list[Damage]()
        begins = log_of(path, RECORDS)
        flip(path, begins[4] + {"length": 0, "crc": 4, "payload": 12}[where])
        read = [payload for _, payload in read_records(path, on_damage=damage.append)]
        assert read == RECORDS[:4] + RECORDS[5:]
        assert damage == [(path, begins[4], begins[5])]
        assert [payload for _, payload in read_records(path)] == RECORDS[:4], "who can't do without it, stops there"


@pytest.mark.parametrize("tail", [b"", b"\0" * 5000, FRAME.pack(90, 1) + b"half of", b"\x05", b"[" * 3000])
def test_where_a_writer_died_is_no_damage(tmp_path: Path, tail: bytes) -> None:
    log_of(tmp_path / "log", RECORDS)
    with (tmp_path / "log").open("ab") as file:
        file.write(tail)
    damage = list[Damage]()
    assert [payload for _, payload in read_records(tmp_path / "log", on_damage=damage.append)] == RECORDS
    assert damage == []


def test_what_is_written_while_it_is_read_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a frame was there when it was read, and all of it and more when the reader asks how long the file is."""
    path, fstat, damage = tmp_path / "log", os.fstat, list[Damage]()
    begins = log_of(path, RECORDS)
    whole = path.read_bytes()
    os.truncate(path, begins[4] + 12)

    def it_is_written_on(fd: int) -> os.stat_result:
        path.write_bytes(whole)
        return fstat(fd)

    monkeypatch.setattr(os, "fstat", it_is_written_on)
    assert [payload for _, payload in read_records(path, on_damage=damage.append)] == RECORDS
    assert damage == []


@given(st.lists(st.integers(0, 10_000), max_size=5), st.integers(0, 400))
def test_whatever_is_flipped_nothing_else_is_lost_and_nothing_is_made_up(
    tmp_path_factory: pytest.TempPathFactory, flips: list[int], cut: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "log"
    begins = log_of(path, RECORDS)
    size = path.stat().st_size
    touched = {at % size for at in flips}
    for at in touched:
        flip(path, at)
    os.truncate(path, size - min(cut, size))
    kept = [
        record
        for begin, record in zip(begins, RECORDS, strict=True)
        if begin + 8 + len(record) <= size - cut and not touched & {*range(begin, begin + 8 + len(record))}
    ]
    assert [payload for _, payload in read_records(path, on_damage=lambda _: None)] == kept


@pytest.mark.parametrize("spoil", [lambda path: flip(path, 60), lambda path: os.truncate(path, 70), Path.unlink])
def test_a_term_log_goes_on_after_damage_and_says_where_it_is(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    for term in (1, 2):
        with closing(open_term(tmp_path, "log", term)) as writer:
            for number in range(3):
                writer.append(b'["%d.%d"]' % (term, number))
    spoil(file_of(tmp_path, "log", 1))
    damage = list[Damage]()
    read = [raw for _, _, raw in read_term_log(tmp_path, "log", on_damage=damage.append)]
    assert read[-3:] == [b'["2.0"]', b'["2.1"]', b'["2.2"]']
    assert len(read) < 6
    assert {each.path for each in damage} == {file_of(tmp_path, "log", 1)}
    for _, at, raw in read_term_log(tmp_path, "log", on_damage=damage.append):
        assert any(raw in path.read_bytes()[at:] for path in tmp_path.iterdir())
    with pytest.raises(CorruptLog, match=r"log\.1"):
        list(read_term_log(tmp_path, "log"))


def test_without_its_header_a_file_counts_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    for term in (1, 2, 3):
        with closing(open_term(tmp_path, "log", term)) as writer:
            writer.append(b'["%d"]' % term)
    flip(file_of(tmp_path, "log", 3), 20)
    damage = list[Damage]()
    read = [raw for _, _, raw in read_term_log(tmp_path, "log", on_damage=damage.append)]
    assert read == [b'["1"]', b'["2"]', b'["3"]']
    assert [each.path.name for each in damage] == ["log.3"]
    with pytest.raises(CorruptLog, match=r"log\.3"):
        list(read_term_log(tmp_path, "log"))


def test_what_a_paused_leader_adds_after_the_last_record_was_read_is_no_damage(tmp_path: Path) -> None:
    check_what_a_paused_leader_adds(tmp_path)


def check_what_a_paused_leader_adds(folder: Path) -> None:
    """Check that a log is whole when more was added since it was read, and when that is damaged."""
    with closing(open_term(folder, "log", 1)) as writer:
        _, second, third, fourth, *_ = [writer.append(record) for record in RECORDS]
    (span,) = spans(folder, "log")
    try:
        check_whole(folder, "log", span, second)
    except CorruptLog as error:
        pytest.fail(f"{error}")
    flip(file_of(folder, "log", 1), third + 12)
    assert fourth < file_of(folder, "log", 1).stat().st_size
    with pytest.raises(CorruptLog, match=rf"log\.1 is damaged at byte {second}"):
        check_whole(folder, "log", span, second)


def test_a_successor_does_without_a_damaged_header(tmp_path: Path) -> None:
    check_damaged_headers(tmp_path)


def check_damaged_headers(folder: Path) -> None:
    """A leader whose predecessor's header is damaged knows of its decisions and its failed tries all the same."""
    with closing(DecisionWriter(folder, 1)) as first, closing(RetryLog(folder, 1)) as retries:
        first.add([outcome(0), outcome(1)])
        retries.add([failed(2, status="retry")])
    for name in ("decisions", "retries"):
        flip(file_of(folder, name, 1), 20)
    damage = list[Damage]()
    try:
        with closing(DecisionWriter(folder, 2, on_damage=damage.append)) as second:
            assert second.decided.count == 2
            second.add([outcome(2)])
        retried = [each.mini_batch for each in RetryLog(folder, 2).earlier(on_damage=damage.append)]
    except CorruptLog as error:
        pytest.fail(f"the job has no leader any more: {error}")
    assert retried == [2]
    assert {each.path.name for each in damage} == {"decisions.1", "retries.1"}
    assert sorted(each.mini_batch for each in read_decisions(folder)) == [0, 1, 2]


def test_a_successor_accepts_what_comes_after_damage(tmp_path: Path) -> None:
    with closing(DecisionWriter(tmp_path, 1)) as first:
        for number in range(5):
            first.add([outcome(number)])
    size = file_of(tmp_path, "decisions", 1).stat().st_size
    flip(file_of(tmp_path, "decisions", 1), size // 2)
    damage = list[Damage]()
    with closing(DecisionWriter(tmp_path, 2, on_damage=damage.append)) as second:
        assert second.decided.count == 4
        assert len(damage) == 1
        assert [*second.decided.undecided(5)] == [2]
        second.add([outcome(2)])
    assert sorted(each.mini_batch for each in read_decisions(tmp_path)) == [0, 1, 2, 3, 4]


def test_mini_batches_keep_their_numbers_so_a_damaged_manifest_is_an_error(tmp_path: Path) -> None:
    with closing(DecisionWriter(tmp_path, 1)):
        writer = ManifestWriter(tmp_path, 1)
    for number in range(5):
        writer.add(encode_files([(b"/data", [b"%d" % number])], 1), 1)
    closed = writer.close(order="sorted")
    flip(file_of(tmp_path, "manifest", 1), 100)
    with pytest.raises(CorruptLog, match=r"manifest\.1 is damaged at byte"):
        read_closing(tmp_path)
    assert last_closing(tmp_path) == closed


# Decisions that are lost


def lost(of: RowsPlace) -> LostRows:
    return LostRows(of.mini_batch, of.part, of.offset)


def decisions(folder: Path) -> list[tuple[int, str]]:
    return sorted((each.mini_batch, each.token) for each in read_decisions(folder))


def test_a_decision_that_has_lost_its_rows_is_made_again_once(tmp_path: Path) -> None:
    first, other, again = outcome(3, rows=2, items=2, token="one"), outcome(4, token="other"), outcome(3, token="two")
    with closing(DecisionWriter(tmp_path, 1)) as writer:
        writer.add([first, other])
    seen = list[Outcome]()
    with closing(DecisionWriter(tmp_path, 2, seen.append, lost=[lost(first)])) as writer:
        assert [(each.mini_batch, each.status) for each in seen] == [(3, "done"), (4, "done"), (3, "lost")]
        decided = writer.decided
        assert (3 in decided, 4 in decided, decided.done, decided.rows, decided.items_done) == (False, True, 1, 1, 1)
        assert decisions(tmp_path) == [(4, "other")]
        assert writer.add([first]) == [], "what was lost isn't decided by the same delivery"
        assert writer.add([again, outcome(3, token="three")]) == [again]
        assert (decided.done, decided.rows) == (2, 2)
    assert decisions(tmp_path) == [(3, "two"), (4, "other")]
    with closing(DecisionWriter(tmp_path, 3)) as writer:
        assert vars(writer.decided) == vars(decided) | {"_first": writer.decided._first}
    assert decisions(tmp_path) == [(3, "two"), (4, "other")]


def test_only_the_rows_that_were_named_lose_their_decision(tmp_path: Path) -> None:
    """A concatenator may report late what has been made again since."""
    with closing(DecisionWriter(tmp_path, 1)) as writer:
        writer.add([outcome(3, part="new", offset=9)])
    with closing(DecisionWriter(tmp_path, 2, lost=[LostRows(3, "old", 9), LostRows(3, "new", 8)])) as writer:
        assert writer.lost == []
        assert writer.decided.done == 1


def test_earlier_releases_refuse_a_log_with_lost_decisions_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(DecisionWriter(tmp_path, 1)) as writer:
        writer.add([outcome(3)])
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr("parallelrun_core.folder.term_log.RETRIED_ITEMS", schema.SCHEMA)
        assert len(list(read_outcomes(tmp_path))) == 1
    DecisionWriter(tmp_path, 2, lost=[lost(outcome(3))]).close()
    DecisionWriter(tmp_path, 3).close()
    monkeypatch.setattr("parallelrun_core.folder.term_log.RETRIED_ITEMS", schema.SCHEMA)
    with pytest.raises(NewerSchema, match="Update this service"):
        list(read_outcomes(tmp_path))


def test_a_lost_decision_whose_record_is_damaged_is_no_decision() -> None:
    decided = Decided()
    gone = outcome(3, status="lost")
    assert not decided.accept(gone)
    assert not decided.withdraw(gone)
    assert 3 not in decided
    assert not decided.accept(outcome(3))
    assert decided.accept(outcome(3, token="another"))


# Records that are JSON


def test_a_record_that_was_changed_is_not_believed(tmp_path: Path) -> None:
    record = SomeRecord(mini_batch=3, name="abc")
    raw = encode(record)
    assert decode(raw, SomeRecord, tmp_path) == record
    for at in range(len(raw)):
        changed = bytearray(raw)
        changed[at] ^= 1
        try:
            read = decode(bytes(changed), SomeRecord, tmp_path)
        except CorruptLog:
            continue
        assert read == record, f"byte {at}"


class SomeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Stands for any record of a job folder."""

    mini_batch: int
    name: str
