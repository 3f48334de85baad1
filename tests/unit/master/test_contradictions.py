"""When a leader believes its books and Redis to contradict each other."""

from __future__ import annotations

import pytest

from parallelrun_master.policy.contradictions import Counts, StillWatch, Whereabouts, whereabouts

COUNTS = Counts(decided=5, published=10, outstanding=4, leased=2)
GONE = Whereabouts(frozenset({7}), frozenset())
FINE = Whereabouts(frozenset(), frozenset())


def sets(*groups: set[int]) -> list[frozenset[int]]:
    return [frozenset(group) for group in groups]


@pytest.mark.parametrize(
    "known, waiting, held, nowhere, unreachable",
    [
        ({1, 2, 3}, {1}, {2, 3}, set[int](), set[int]()),
        ({1, 2}, {1}, {2}, {3}, set()),
        ({1, 2, 3}, {1}, {2}, set(), {3}),
        (set(), set(), set(), {1, 2, 3}, set()),
        ({1, 2, 3, 9}, {1, 9}, {2, 3, 9}, set(), set()),  # 9 was decided, by a journal: who runs it comes too late
    ],
)
def test_what_is_undecided_must_wait_or_be_held(
    known: set[int], waiting: set[int], held: set[int], nowhere: set[int], unreachable: set[int]
) -> None:
    seen = whereabouts(*sets({1, 2, 3}, known, waiting, held))
    assert [set(seen.nowhere), set(seen.unreachable)] == [nowhere, unreachable]
    assert bool(seen) == bool(nowhere or unreachable)


def test_nothing_is_checked_while_something_moves() -> None:
    watch = StillWatch()
    for second in range(100):
        assert not watch.is_due(COUNTS._replace(decided=second), float(second))


def test_a_contradiction_must_last() -> None:
    watch = StillWatch()
    assert not watch.is_due(COUNTS, 0.0)
    assert not watch.is_due(COUNTS, 1.9)
    assert watch.is_due(COUNTS, 2.0)
    assert watch.lasting(GONE, 2.0) is None, "it may be on its way"
    assert not watch.is_due(COUNTS, 2.1)
    assert watch.is_due(COUNTS, 2.5)
    assert watch.lasting(GONE, 2.5) == GONE


def test_what_has_come_meanwhile_is_no_contradiction() -> None:
    watch = StillWatch()
    watch.is_due(COUNTS, 0.0)
    assert watch.lasting(GONE, 2.0) is None
    assert watch.lasting(FINE, 2.5) is None
    assert not watch.is_due(COUNTS, 7.0)
    assert watch.is_due(COUNTS, 7.5), "a long run() costs a check every few seconds"
    assert watch.lasting(GONE, 7.5) is None
    watch.is_due(COUNTS._replace(decided=6), 8.0)
    assert watch.lasting(GONE, 10.0) is None, "something has moved"
