"""How many objects are fetched at the same time."""

from __future__ import annotations

import pytest

from parallelrun_agent.policy.fetchers import MAX_FETCHERS, MIN_FETCHERS, Fetchers


def answered(seconds: float, times: int = 32, *, among: float = 0.0) -> Fetchers:
    """Fetchers after so many answers, one of which may have taken another time."""
    fetchers = Fetchers()
    for _ in range(times - 1):
        fetchers.answered(seconds)
    fetchers.answered(among or seconds)
    return fetchers


@pytest.mark.parametrize(
    "seconds, wanted",
    [(0.001, MIN_FETCHERS), (0.02, MIN_FETCHERS), (0.05, 40), (0.2, MAX_FETCHERS), (5.0, MAX_FETCHERS)],
)
def test_a_store_that_takes_longer_is_asked_by_more(seconds: float, wanted: int) -> None:
    assert answered(seconds).wanted == wanted


def test_answers_that_wait_for_the_node_itself_are_not_the_stores_fault() -> None:
    assert answered(0.2, among=0.003).wanted == MIN_FETCHERS


def test_nothing_changes_before_enough_is_known() -> None:
    assert answered(0.2, times=31).wanted == MIN_FETCHERS


def test_a_store_that_became_quick_is_asked_by_few_again() -> None:
    fetchers = answered(0.2)
    for _ in range(32):
        fetchers.answered(0.002)

    assert fetchers.wanted == MIN_FETCHERS
