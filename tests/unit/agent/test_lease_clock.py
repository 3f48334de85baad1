"""How long a node relies on its lease."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from parallelrun_agent.policy.lease_clock import LeaseClock
from parallelrun_core.wire.leasing import RENEW_AFTER

seconds = st.floats(0, 1e5)


@given(lease=st.floats(0.06, 3600), sent=seconds, later=st.floats(0, 7200))
@example(lease=3600.0, sent=0.0, later=3590.0)
def test_the_local_deadline_is_before_the_end_of_the_lease(lease: float, sent: float, later: float) -> None:
    clock = LeaseClock(lease)
    assert not clock.is_valid(sent)
    clock.renewed(sent)
    if clock.is_valid(sent + later):
        assert later < lease * (1 - RENEW_AFTER)  # a quick turn doesn't renew it in full
    assert not clock.is_valid(sent + lease)
    assert clock.is_valid(sent) or lease < 1e-9 * sent


@given(lease=st.floats(1, 100), times=st.lists(seconds, min_size=1, max_size=10), now=seconds)
def test_an_older_renewal_that_is_confirmed_late_takes_nothing_away(
    lease: float, times: list[float], now: float
) -> None:
    clock, newest = LeaseClock(lease), LeaseClock(lease)
    newest.renewed(max(times))
    for sent in times:
        clock.renewed(sent)
    assert clock.is_valid(now) == newest.is_valid(now)
