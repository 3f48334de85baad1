"""How far a node looks ahead."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_agent.policy.look_ahead import HORIZON_S, MAX_DEPTH, LookAhead


@given(times=st.lists(st.floats(0, 1e5), max_size=30))
def test_the_depth_stays_within_its_bounds(times: list[float]) -> None:
    look_ahead = LookAhead(enabled=True)
    assert look_ahead.depth == 1
    for run_s in times:
        look_ahead.observe(run_s)
        assert 1 <= look_ahead.depth <= MAX_DEPTH
    off = LookAhead(enabled=False)
    for run_s in times:
        off.observe(run_s)
    assert off.depth == 1


@given(before=st.lists(st.floats(0, 0.001), max_size=30))
def test_one_long_run_is_believed_at_once(before: list[float]) -> None:
    look_ahead = LookAhead(enabled=True)
    for run_s in before:
        look_ahead.observe(run_s)
    look_ahead.observe(10.0)
    assert look_ahead.depth == 1


def test_short_runs_are_believed_in_time() -> None:
    look_ahead = LookAhead(enabled=True)
    look_ahead.observe(1.0)
    for _ in range(200):
        look_ahead.observe(0.0001)
    assert look_ahead.depth > 100


@given(run_s=st.floats(1e-4, 10))
def test_about_as_much_waits_as_the_horizon_says(run_s: float) -> None:
    look_ahead = LookAhead(enabled=True)
    for _ in range(3):
        look_ahead.observe(run_s)
    assert (look_ahead.depth - 1) * run_s <= HORIZON_S
