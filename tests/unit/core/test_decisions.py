"""The first decision wins; a later generation may replace a failure, and never a success."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.folder.decided import Decided, FirstWins
from parallelrun_core.folder.decisions import NAME, DecisionWriter, read_decisions, read_outcomes, read_places
from parallelrun_core.folder.term_log import read_term_log
from parallelrun_core.wire.outcome import Failure, LostItems, Outcome, RowsPlace, decode_list, encode, encode_list
from tests.unit.core.factories import failed, outcome

some = st.builds(
    lambda mini_batch, generation, done, token: (outcome if done else failed)(
        mini_batch, generation=generation, token=str(token)
    ),
    st.integers(0, 5),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 10**6),
)


def model(outcomes: list[Outcome]) -> list[Outcome]:
    """What must be accepted, told in the simplest way."""
    accepted: list[Outcome] = []
    for each in outcomes:
        before = [other for other in accepted if other.mini_batch == each.mini_batch]
        if any(other.status == "done" for other in before):
            continue
        if before and each.generation <= max(other.generation for other in before):
            continue
        accepted.append(each)
    return accepted


@given(outcomes=st.lists(some, max_size=40))
@settings(deadline=None, max_examples=200)
def test_the_first_of_a_generation_counts_and_success_is_final(outcomes: list[Outcome]) -> None:
    decided = Decided()
    expected = model(outcomes)
    assert [each for each in outcomes if decided.accept(each)] == expected
    ids = {each.mini_batch for each in expected}
    assert decided.count == len(ids)
    assert {number for number in range(10) if number in decided} == ids
    rule = FirstWins()
    assert [each for each in outcomes if rule.accept(each)] == expected
    assert rule.count == len(ids)


def test_what_failed_before_anybody_knew_its_items_counts_as_many_as_others_have() -> None:
    """A range of a table that can't be parsed: error_threshold must see it."""
    decided = Decided()
    decided.accept(failed(0, items=0))
    assert (decided.items_failed, decided.items_estimated) == (1, 1)
    decided.typical_items = 500  # `mini_batch_size: rows:500`
    assert (decided.items_failed, decided.items_estimated) == (500, 500)
    decided.accept(outcome(1, items=0, rows=0))
    decided.accept(outcome(2, items=30, rows=20))
    decided.accept(failed(3, items=10))
    assert (decided.items_done, decided.items_short) == (20, 10)
    assert (decided.items_failed, decided.items_estimated) == (40, 20), "20 on average; an empty range tells nothing"
    assert decided.reopen(1, None) == [0, 3]
    assert (decided.items_failed, decided.items_estimated) == (10, 0)
    decided.accept(outcome(0, items=4, rows=4, generation=1))
    assert (decided.items_failed, decided.items_done) == (10, 24)


@given(outcomes=st.lists(some, max_size=12), cuts=st.lists(st.integers(0, 12), max_size=3))
@settings(deadline=None, max_examples=40)
def test_leaders_that_follow_each_other_agree_with_one_that_never_died(
    outcomes: list[Outcome], cuts: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        at = 0
        accepted: list[Outcome] = []
        for term, cut in enumerate([*sorted(cuts), len(outcomes)], start=1):
            writer = DecisionWriter(folder, term)
            # A new leader reads the stream again from an entry that its predecessor had not trimmed.
            accepted += writer.add(outcomes[max(0, at - 2) : cut])
            at = max(at, cut)
            writer.sync()
            writer.close()
        assert accepted == model(outcomes)
        assert list(read_decisions(folder)) == accepted
        assert list(read_outcomes(folder)) == accepted


def test_large_ids_cost_a_byte_each() -> None:
    decided = Decided()
    assert 10**7 not in decided
    assert decided.accept(outcome(10**7))
    assert 10**7 in decided
    assert 10**7 - 1 not in decided
    assert decided.count == 1


def test_repeats_are_not_written(tmp_path: Path) -> None:
    writer = DecisionWriter(tmp_path, 1)
    assert writer.add([outcome(1), outcome(1, token="late")]) == [outcome(1)]
    writer.sync()
    size = (tmp_path / "decisions.1").stat().st_size
    assert writer.add([outcome(1)]) == []
    assert writer.add([]) == []
    writer.close()
    assert (tmp_path / "decisions.1").stat().st_size == size


def test_what_is_encoded_already_is_written_as_it_is_unless_some_of_it_is_late(tmp_path: Path) -> None:
    groups = [[outcome(0), failed(1)], [outcome(2)], [outcome(2, token="late"), outcome(3)]]
    encoded = [encode_list([encode(each) for each in group]).replace(b",", b", ") for group in groups]
    writer = DecisionWriter(tmp_path, 1)
    assert writer.add([*groups[0], *groups[1]], encoded[:2]) == [*groups[0], *groups[1]]
    assert writer.add(groups[2], encoded[2:]) == [outcome(3)]
    writer.close()
    assert list(read_outcomes(tmp_path)) == [outcome(0), failed(1), outcome(2), outcome(3)]
    records = [raw for _, _, raw in read_term_log(tmp_path, NAME)]
    assert records == [encoded[0], encoded[1], encode_list([encode(outcome(3))])]


def test_a_paused_leader_decides_nothing_any_more(tmp_path: Path) -> None:
    paused = DecisionWriter(tmp_path, 1)
    paused.add([outcome(0)])
    paused.sync()
    successor = DecisionWriter(tmp_path, 2)
    paused.add([failed(1)])
    paused.sync()
    successor.add([outcome(1)])
    successor.sync()
    assert [(each.mini_batch, each.status) for each in read_decisions(tmp_path)] == [(0, "done"), (1, "done")]
    paused.close()
    successor.close()


def test_a_term_has_one_decision_log(tmp_path: Path) -> None:
    DecisionWriter(tmp_path, 1).close()
    with pytest.raises(FileExistsError):
        DecisionWriter(tmp_path, 1)


def test_all_fields_come_back(tmp_path: Path) -> None:
    given_outcomes = [
        outcome(2**40, offset=2**45, length=2**40, crc=2**32 - 1, items=10**7, rows=0),
        failed(3, message="Üñí\n\0 \U0001f600", tries=3, process="process001"),
    ]
    writer = DecisionWriter(tmp_path, 1)
    writer._log.append(encode_list([encode(each) for each in given_outcomes]))
    writer.sync()
    writer.close()
    assert list(read_outcomes(tmp_path)) == given_outcomes
    names = RowsPlace.__struct_fields__
    assert names == Outcome.__struct_fields__[: len(names)]
    assert [[getattr(place, name) for name in names] for place in read_places(tmp_path)] == [
        [getattr(each, name) for name in names] for each in given_outcomes
    ]


@pytest.mark.parametrize(
    "given_outcome, expected",
    [
        (outcome(items=5, rows=5), 0),
        (outcome(items=5, rows=3), 2),
        (outcome(items=5, rows=0), 5),
        (outcome(items=5, rows=50), 0),
        (failed(items=5), 5),
        (failed(items=5, rows=3), 5),
    ],
)
def test_failed_items(given_outcome: Outcome, expected: int) -> None:
    assert given_outcome.failed_items == expected


def test_a_success_stays_whatever_comes_later() -> None:
    decided = Decided()
    assert decided.accept(outcome(0, rows=3))
    for later in (outcome(0, token="late"), outcome(0, generation=1), failed(0, generation=2)):
        assert not decided.accept(later)
    assert (decided.count, decided.done, decided.failed, decided.rows) == (1, 1, 0, 3)


WITH_LOST = outcome(
    1, items=5, rows=3, token="first", lost=(LostItems(1, 2, Failure("RUN_EXCEPTION", "ValueError: bad")),)
)


def retried(folder: Path, later: Outcome) -> tuple[Outcome, DecisionWriter]:
    """Return the decision after items have been tried again in generation 1, as each reader sees it."""
    writer = DecisionWriter(folder, 1)
    writer.add([outcome(0), WITH_LOST])
    writer.close()
    writer = DecisionWriter(folder, 2, retries_items=True)
    assert writer.decided.reopen_items(1, None) == [1]
    assert (writer.decided.count, writer.decided.items_failed, 1 in writer.decided) == (1, 0, False)
    stands = [each.token for each in read_decisions(folder)]
    assert stands == [outcome(0).token, "first"], "until it is replaced"
    (accepted,) = writer.add([later])
    writer.close()
    first, decision = read_decisions(folder)
    assert (first, decision) == (outcome(0), accepted)
    successor = DecisionWriter(folder, 3, retries_items=True)
    successor.close()
    return decision, successor


def test_outcomes_end_with_their_last_field_that_is_not_empty() -> None:
    for each in (outcome(0), failed(1), WITH_LOST, outcome(2, waits={"api": 1.5})):
        whole = msgspec.json.encode(each)
        assert encode(each) == whole.replace(b",[],[],[],{}]", b"]")
        assert decode_list(encode_list([encode(each), whole])) == [each, each], "earlier releases write all of them"


def test_items_that_are_tried_again_replace_a_success(tmp_path: Path) -> None:
    later = outcome(1, items=5, rows=5, generation=1, token="second")
    decision, successor = retried(tmp_path, later)
    assert decision == later
    assert successor.decided.reopen_items(1, None) == [], "the next leader doesn't do it once more"
    decided = successor.decided
    assert (decided.done, decided.rows, decided.items_done, decided.items_failed) == (2, 6, 6, 0)


@pytest.mark.parametrize(
    "later",
    [
        failed(1, items=5, generation=1, token="second"),
        failed(1, items=5, generation=1, token=""),
        outcome(1, items=5, rows=2, generation=1, token="second"),
    ],
)
def test_items_that_fail_again_cost_no_row(tmp_path: Path, later: Outcome) -> None:
    decision, successor = retried(tmp_path, later)
    assert (decision.status, decision.rows, decision.part, decision.generation) == ("done", 3, WITH_LOST.part, 1)
    assert decision.items_lost == 2
    decided = successor.decided
    assert (decided.done, decided.rows, decided.items_isolated) == (2, 4, 2)
    assert decided.reopen_items(1, None) == []
    assert decided.reopen_items(2, None) == [1], "another retry takes them again"
