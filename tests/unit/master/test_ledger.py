"""The leader's books: nothing is forgotten before it is durable, nothing is counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.folder import decisions
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions, read_outcomes
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_core.store.seals import Seals
from parallelrun_core.wire.outcome import Outcome, encode, encode_list
from parallelrun_master.ledger.ledger import Ledger
from tests.unit.core.factories import failed, outcome
from tests.unit.master import factories


class Stream:
    """The outcome stream as a list; it says what was durable at the moment when something was forgotten."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[StreamEntry] = []
        self.forgotten: list[tuple[bytes, list[int]]] = []

    def add(self, *outcomes: Outcome) -> None:
        self.entries.append(StreamEntry(b"%d-0" % (len(self.entries) + 1), outcomes=outcomes))

    def read_entries(self, after: bytes, seals: Seals, *, block_ms: int | None) -> list[StreamEntry]:
        return [entry for entry in self.entries if int(entry.entry_id[:-2]) > int(after[:-2])]

    def forget(self, up_to: bytes) -> None:
        self.forgotten.append((up_to, [each.mini_batch for each in read_decisions(self.folder)]))


def ledger(stream: Stream, term: int = 1, *, generation: int = 0) -> Ledger:
    return factories.ledger(stream.folder, stream, term, generation=generation)


def record_all(books: Ledger) -> list[Outcome]:
    return books.record([each for entry in books.read(block_ms=None) for each in entry.outcomes])[0]


def test_redis_forgets_only_what_is_durable(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    books.sync_and_trim(1.0, at_once=True)
    stream.add(outcome(0), outcome(1))
    stream.add(outcome(2))
    assert len(record_all(books)) == 3
    books.sync_and_trim(1.0)
    books.sync_and_trim(2.0)
    assert stream.forgotten == [(b"2-0", [0, 1, 2])]
    stream.add(outcome(3))
    record_all(books)
    books.sync_and_trim(2.0)
    books.sync_and_trim(2.0, at_once=True)
    assert stream.forgotten[1:] == [(b"3-0", [0, 1, 2, 3])]
    books.close()


def test_a_try_that_is_no_decision_is_not_written_with_those_that_are(tmp_path: Path) -> None:
    """Though they came together, encoded together."""
    found = [outcome(0), failed(1, status="retry"), outcome(2)]
    books = ledger(Stream(tmp_path))
    assert books.record(found, [encode_list([encode(each) for each in found])])[0] == [found[0], found[2]]
    books.close()
    assert list(read_outcomes(tmp_path)) == [found[0], found[2]]


def test_repeats_count_once_also_after_redis_came_back(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(outcome(0), failed(1, items=4), outcome(0, token="again"))
    assert [each.mini_batch for each in record_all(books)] == [0, 1]
    books.start_over()
    assert record_all(books) == []
    progress = books.progress
    assert (progress.done, progress.failed, progress.items_failed, progress.rows) == (1, 1, 4, 1)
    assert books.decided.count == 2
    books.close()


def test_the_same_errors_are_counted_once_also_after_redis_came_back(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(failed(1), failed(2, status="retry"))
    record_all(books)
    books.start_over()
    record_all(books)
    books.close()
    (group,) = books.errors.most_common(1)
    assert group.count == 2
    assert books.progress.retried == 1


def test_the_next_leader_counts_the_same(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(outcome(0), failed(1, items=3), outcome(2, items=5, rows=3))
    record_all(books)
    books.close()
    heir = ledger(stream, term=2)
    assert record_all(heir) == []
    assert heir.progress == books.progress
    assert heir.decided.count == 3
    assert heir.errors.first is not None
    heir.close()


def test_the_next_leader_counts_the_same_errors_though_redis_tells_some_again(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    tries = [failed(1, status="retry", token=f"a.{number}", tries=number, message="E: x") for number in (1, 2)]
    stream.add(*tries, failed(1, token="a.3", tries=3, message="E: y"), failed(2, status="retry", token="b"))
    record_all(books)
    books.sync_and_trim(1.0, at_once=True)
    books.close()
    heir = ledger(stream, term=2)
    inherited = errors_of(heir)
    record_all(heir)  # its predecessor died before Redis had forgotten
    stream.add(failed(2, status="retry", token="c", message="E: x"))
    record_all(heir)
    heir.close()
    third = ledger(stream, term=3)
    record_all(third)
    third.close()
    assert inherited == errors_of(books)
    assert heir.progress.retried == 4
    assert errors_of(third) == {"E: x": (3, "Traceback"), "E: y": (1, "Traceback"), "ValueError: bad": (1, "Traceback")}
    assert third.progress == heir.progress


def errors_of(books: Ledger) -> dict[str, tuple[int, str]]:
    return {each.message: (each.count, each.traceback) for each in books.errors.most_common(9)}


def test_tries_that_a_paused_leader_notes_beside_its_heir_are_counted_once(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    paused = ledger(stream)
    stream.add(failed(1, status="retry", token="a"))
    record_all(paused)
    paused.sync_and_trim(1.0, at_once=True)
    heir = ledger(stream, term=2)
    stream.add(failed(2, status="retry", token="b"))
    for awake in (paused, heir):
        record_all(awake)
        awake.close()
    third = ledger(stream, term=3)
    assert third.errors.count == 2
    third.close()


def test_the_picked_count_goes_on_when_the_user_lets_the_job_go_on(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(
        failed(1, status="retry", token="a"), failed(1, token="b", tries=2), failed(2, status="retry", token="c")
    )
    record_all(books)
    books.close()
    stream.entries.clear()
    again = ledger(stream, term=2, generation=1)
    again.reopen(1, None)
    stream.add(failed(1, status="retry", token="d", generation=1, started=2.0), outcome(2, token="e", generation=1))
    stream.add(outcome(1, token="f", tries=2, generation=1, started=3.0), outcome(3, token="g", generation=1))
    record_all(again)
    again.close()
    lines = (tmp_path / "logs" / "sys" / "job_report" / "processed_mini-batches.csv").read_text().splitlines()
    picked = [tuple(line.split(",")[:2]) for line in lines if "LOAD_DONE" not in line][1:]
    assert sorted(picked) == [("1", "1"), ("1", "2"), ("1", "3"), ("1", "4"), ("2", "1"), ("2", "2"), ("3", "1")]


def test_a_leader_that_writes_while_its_heir_begins_is_counted_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise progress and thresholds miss a decision for ever."""
    paused = DecisionWriter(tmp_path, 1)

    def it_wakes_just_before(folder: Path, name: str, term: int, **_: object) -> RecordWriter:
        paused.add([failed(0, items=7)])
        paused.sync()
        return open_term(folder, name, term)

    monkeypatch.setattr(decisions, "open_term", it_wakes_just_before)
    heir = ledger(Stream(tmp_path), term=2)
    heir.close()
    paused.close()
    recount = list(read_decisions(tmp_path))
    assert heir.decided.count == len(recount)
    assert heir.progress.failed == len(recount)
    assert heir.progress.items_failed == sum(each.failed_items for each in recount)


def test_retries_are_counted_and_not_decided(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(failed(0, status="retry"))
    accepted, new_groups = books.record(list(stream.entries[0].outcomes))
    assert accepted == []
    assert len(new_groups) == 1
    assert 0 not in books.decided
    assert books.progress.retried == 1
    books.close()


def test_what_comes_in_after_redis_lost_its_last_moments_is_read(tmp_path: Path) -> None:
    """A Redis that is set back may give the same entry id a second time, to something else."""
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(outcome(0))
    stream.add(outcome(1))
    record_all(books)
    stream.entries.pop()
    stream.add(outcome(2))
    books.start_over()
    record_all(books)
    books.close()
    assert [each.mini_batch for each in read_decisions(tmp_path)] == [0, 1, 2]


@pytest.mark.parametrize("reads_first", [False, True])
def test_what_was_recorded_is_durable_whatever_redis_has_forgotten_by_then(tmp_path: Path, reads_first: bool) -> None:
    """Redis is set back before the books were synced: it holds nothing that is new, and they still have to be."""
    stream = Stream(tmp_path)
    books = ledger(stream)
    stream.add(outcome(0))
    record_all(books)
    books.sync_and_trim(1.0, at_once=True)
    stream.add(outcome(1))
    record_all(books)
    books.sync_and_trim(1.01)  # too soon
    stream.entries.pop()
    books.start_over()
    if reads_first:
        assert record_all(books) == []
    books.sync_and_trim(9.0, at_once=True)
    assert [each.mini_batch for each in read_decisions(tmp_path)] == [0, 1]
    books.close()
