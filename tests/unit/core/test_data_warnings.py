"""Warnings about data: named and bounded by the worker, counted once for each decision, and said in one sentence."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_agent.workers.answers import parse_warnings
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.decided import Decided
from parallelrun_core.wire.data_warnings import DataWarning, WarningTotals
from parallelrun_core.wire.masking import Mask
from parallelrun_worker import frames
from parallelrun_worker.tables import data_warnings
from tests.unit.core.factories import failed, outcome

ZIP = DataWarning("leading_zero", "in/a.csv", "zip", "'007' was read as 7", "write zip: string", 3, "value", 12, 480)


def sent(warnings: data_warnings.DataWarnings, mask: Mask | None = None) -> list[DataWarning]:
    """What an agent makes of the frame that a worker sends."""
    payload = frames.MINI_BATCH.pack(7) + warnings.take()
    mini_batch, parsed = parse_warnings(payload, mask or Mask({}))
    assert mini_batch == 7
    return parsed


def test_data_warnings_have_the_same_fields_in_worker_and_core() -> None:
    assert data_warnings.DataWarning._fields == DataWarning.__struct_fields__
    ours, theirs = DataWarning("k", "f", "c", "w", "r"), data_warnings.DataWarning("k", "f", "c", "w", "r")
    assert msgspec.structs.astuple(ours) == tuple(theirs)


def test_data_warnings_of_one_column_become_one_with_the_first_place() -> None:
    warnings = data_warnings.DataWarnings()
    assert not warnings
    for number in range(1000):
        warnings.add(data_warnings.DataWarning("k", "a.csv", "c", f"value {number}", "r", line=number + 1))
    (warning,) = sent(warnings)
    assert (warning.what, warning.times, warning.line) == ("value 0", 1000, 1)
    assert not warnings


def test_data_warnings_of_a_mini_batch_are_bounded_in_number_and_size() -> None:
    warnings = data_warnings.DataWarnings()
    for number in range(20_000):
        warnings.add(data_warnings.DataWarning("k", "a.csv", f"c{number}", "w" * 100_000, "r" * 100_000))
    parsed = sent(warnings)
    assert len(parsed) <= data_warnings.MOST + 1
    assert len(msgspec.json.encode(parsed)) < 2 * data_warnings.MOST_BYTES
    assert parsed[-1].kind == "more"
    assert len(parsed) - 1 + parsed[-1].times == 20_000


def test_data_warnings_have_no_secrets_and_nothing_invisible() -> None:
    warnings = data_warnings.DataWarnings()
    warnings.add(data_warnings.DataWarning("k", "in/\udcff.csv", "c\x1b[2J", "'hunter22' was read as null", "r"))
    (warning,) = sent(warnings, Mask({"environment_variables": {"PASSWORD": "hunter22"}}))
    assert warning.what == "'***' was read as null"
    assert "\x1b" not in warning.column
    warning.in_words().encode()


@pytest.mark.parametrize("payload", [b"", b"\0" * 8, b"\0" * 8 + b"[[1]]", b"\0" * 8 + b'[["k","f","c","w","r",0]]'])
def test_data_warnings_that_are_no_warnings_are_refused(payload: bytes) -> None:
    with pytest.raises(CorruptLog):
        parse_warnings(payload, Mask({}))


def test_data_warnings_count_once_for_each_decision() -> None:
    decided = Decided()
    assert decided.accept(outcome(0, warnings=(ZIP,)))
    assert not decided.accept(outcome(0, warnings=(ZIP,), token="another"))
    assert decided.accept(failed(1, warnings=(ZIP,)))
    assert [warning.times for warning in decided.warnings] == [6]
    decided.reopen(1, None)
    assert [warning.times for warning in decided.warnings] == [3]
    assert decided.accept(outcome(1, generation=1, warnings=(ZIP,)))
    assert [warning.times for warning in decided.warnings] == [6]
    lost = msgspec.structs.replace(outcome(0, warnings=(ZIP,)), status="lost")
    assert decided.withdraw(lost)
    assert [warning.times for warning in decided.warnings] == [3]


def test_data_warnings_keep_the_first_place_of_a_file_in_any_order() -> None:
    later = msgspec.structs.replace(ZIP, what="'008' was read as 8", line=900, offset=40_000)
    for order in ([ZIP, later], [later, ZIP]):
        totals = WarningTotals()
        totals.add(order)
        assert totals.lines() == ["in/a.csv, column 'zip', line 12: '007' was read as 7 (6 values); write zip: string."]


def test_data_warnings_are_summed_up_by_column() -> None:
    totals = WarningTotals()
    totals.add(msgspec.structs.replace(ZIP, file=f"in/{number:04}.csv") for number in range(900))
    assert totals.summary() == [
        "in/0000.csv, column 'zip', line 12: '007' was read as 7 (2,700 values in 900 files); write zip: string."
    ]
    assert len(totals.lines()) == 900


def test_data_warnings_of_very_many_files_and_columns_are_bounded() -> None:
    totals = WarningTotals()
    for number in range(3000):
        totals.add([msgspec.structs.replace(ZIP, file=f"in/{number:04}.csv", column=f"c{number}", times=1)])
    assert len(totals.lines()) <= 1001
    assert sum(warning.times for warning in totals) == 3000
    assert len(totals.summary()) <= 21


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=20))
def test_data_warnings_that_are_found_again_by_a_later_leader_count_once(entries: list[tuple[int, int]]) -> None:
    warnings = [msgspec.structs.replace(ZIP, file=f"{file}.csv", times=times) for file, times in entries]
    first = WarningTotals()
    first.add(warnings)
    twice = WarningTotals()
    twice.raise_to(first)
    twice.raise_to(first)
    assert twice.lines() == first.lines()


def test_data_warnings_of_earlier_releases_outcomes_are_none() -> None:
    raw = msgspec.json.decode(msgspec.json.encode(outcome(0)))[:-1]
    assert msgspec.json.decode(msgspec.json.encode(raw), type=type(outcome(0))).warnings == ()
