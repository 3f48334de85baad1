"""Items of a mini-batch that are run apart: the guilty ones are found, in few calls, and nothing is run in vain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_worker.execution.isolation import Uneven, joined, run_apart
from parallelrun_worker.rows.kept_rows import ItemRange


class Script:
    """Raises for parts with a guilty item."""

    def __init__(self, guilty: set[int]) -> None:
        self.guilty = guilty
        self.calls: list[ItemRange] = []

    def call(self, part: ItemRange) -> list[int] | None:
        """Return the items of a part, or None."""
        self.calls.append(part)
        items = range(part.first, part.first + part.items)
        return None if self.guilty.intersection(items) else [*items]


def rows_of(good: list[tuple[ItemRange, Any]]) -> list[int]:
    return [row for _, rows in good for row in rows]


@given(items=st.integers(2, 200), guilty=st.sets(st.integers(0, 199), max_size=5))
def test_apart_finds_all_guilty_items_if_it_may_call_often_enough(items: int, guilty: set[int]) -> None:
    script = Script({item for item in guilty if item < items} or {0})
    good = run_apart(items, [], 10_000, script.call)
    if good:
        assert rows_of(good) == [item for item in range(items) if item not in script.guilty]
    assert len(script.calls) == len(set(script.calls)), "nothing is called twice"
    assert ItemRange(0, items) not in script.calls, "it has failed as a whole already"


@given(items=st.integers(2, 300), guilty=st.sets(st.integers(0, 299), min_size=1), calls=st.integers(0, 40))
def test_apart_never_calls_more_often_than_it_may(items: int, guilty: set[int], calls: int) -> None:
    script = Script(guilty)
    good = run_apart(items, [], calls, script.call)
    assert len(script.calls) <= calls
    rows = rows_of(good)
    assert rows == sorted(set(rows)), "each at most once, in order"
    assert not guilty.intersection(rows)


def test_apart_needs_about_two_calls_for_each_halving_of_one_guilty_item() -> None:
    script = Script({700})
    assert len(rows_of(run_apart(1024, [], 64, script.call))) == 1023
    assert len(script.calls) <= 20


def test_apart_gives_up_soon_if_nothing_goes_well() -> None:
    script = Script(set(range(1000)))
    assert run_apart(1000, [], 64, script.call) == []
    assert len(script.calls) == 14


def test_apart_calls_nothing_again_that_has_killed_a_worker() -> None:
    first = Script({5})
    run_apart(16, [], 64, first.call)
    killers = [part for part in [*first.calls] if first.call(part) is None]
    second = Script({5})
    assert rows_of(run_apart(16, killers, 64, second.call)) == [item for item in range(16) if item != 5]
    assert not set(killers) & set(second.calls)


def test_apart_joins_rows_of_one_kind_only() -> None:
    assert joined([[1], (2, 3)]) == [1, 2, 3]
    with pytest.raises(Uneven, match="list and str"):
        joined([[1], "x"])


@given(items=st.integers(2, 200), missing=st.sets(st.integers(0, 199), min_size=1, max_size=9))
def test_apart_calls_no_part_with_an_item_that_is_known_to_fail(items: int, missing: set[int]) -> None:
    missing = {item for item in missing if item < items} or {0}
    script = Script(missing)
    good = run_apart(items, [ItemRange(item, 1) for item in missing], 10_000, script.call)
    assert rows_of(good) == [item for item in range(items) if item not in missing]
    assert not any(missing.intersection(range(part.first, part.first + part.items)) for part in script.calls)


def test_apart_runs_only_what_is_to_be_tried_again_and_halves_it() -> None:
    script = Script({5, 30})
    good = run_apart(40, [], 64, script.call, [ItemRange(4, 4), ItemRange(12, 1), ItemRange(30, 1)])
    assert rows_of(good) == [4, 6, 7, 12]
    assert all(part.first in (*range(4, 8), 12, 30) for part in script.calls)


def test_apart_tries_all_of_many_single_items_again() -> None:
    script = Script(set(range(100)) - {99})
    assert rows_of(run_apart(100, [], 200, script.call, [ItemRange(item, 1) for item in range(100)])) == [99]
