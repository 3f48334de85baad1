"""How long to wait before the next attempt, and when something is due again."""

import math

import pytest

from parallelrun_core.service.pacing import Backoff, Every


def test_pauses_grow_up_to_the_longest_one() -> None:
    backoff = Backoff(0.25, 1.5)
    assert [backoff.next_s() for _ in range(5)] == [0.25, 0.5, 1.0, 1.5, 1.5]


def test_after_a_success_pauses_are_short_again() -> None:
    backoff = Backoff(1.0, 60.0, factor=3.0)
    assert [backoff.next_s(), backoff.next_s()] == [1.0, 3.0]
    backoff.reset()
    assert backoff.next_s() == 1.0


def test_failures_that_are_counted_elsewhere_have_the_same_pauses() -> None:
    backoff = Backoff(1.0, 30.0)
    assert [backoff.after_s(failures) for failures in (0, 1, 2, 3, 10, 100_000)] == [0.0, 1.0, 2.0, 4.0, 30.0, 30.0]
    assert backoff.next_s() == 1.0, "asking counts nothing"


@pytest.mark.parametrize("drawn,pause_s", [(0.0, 8.0), (0.5, 6.0), (1.0, 4.0)])
def test_jitter_shortens_a_pause_by_up_to_its_part(drawn: float, pause_s: float) -> None:
    assert Backoff(8.0, 8.0, jitter=0.5, draw=lambda: drawn).next_s() == pause_s


def test_something_is_due_at_once_and_then_an_interval_after_it_was_done() -> None:
    every = Every(10.0)
    times = [3.0, 12.9, 13.0, 40.0, 49.0, 50.0]
    assert [every.is_due(now) for now in times] == [True, False, True, True, False, True]


def test_what_is_due_soon_is_due_at_the_next_question() -> None:
    every = Every(10.0)
    assert every.is_due(0.0)
    every.soon()
    assert every.wait_s(1.0) == 0.0
    assert every.is_due(1.0)
    assert not every.is_due(2.0)


def test_the_time_until_something_is_due_is_known() -> None:
    every = Every(10.0, first_at=math.inf)
    assert not every.is_due(1e12)
    every.delay(5.0)
    assert every.wait_s(7.0) == 8.0
    assert every.wait_s(16.0) == 0.0
