"""Who is a straggler."""

from __future__ import annotations

from parallelrun_master.policy.speculation import Speculation

LEASES = {7: "a/1", 8: "b/1"}


def watcher(*, usual_s: float = 1.0) -> Speculation:
    found = Speculation(least_s=10)
    for _ in range(100):
        found.observe(usual_s)
    return found


def test_nobody_is_a_straggler_before_three_quarters_are_decided() -> None:
    watch = watcher()
    watch.stragglers(LEASES, 0.0, decided=74, total=100)
    assert watch.stragglers(LEASES, 1000.0, decided=74, total=100) == []
    assert watch.stragglers(LEASES, 1000.0, decided=75, total=100) == [(7, "a/1"), (8, "b/1")]


def test_patience_is_ten_seconds_or_twice_the_usual() -> None:
    for usual_s, patience_s in ((0.1, 10.0), (20.0, 40.0)):
        watch = watcher(usual_s=usual_s)
        watch.stragglers(LEASES, 0.0, decided=99, total=101)
        assert watch.stragglers(LEASES, patience_s, decided=99, total=101) == []
        assert watch.stragglers(LEASES, patience_s + 0.1, decided=99, total=101) != []


def test_a_twin_that_was_given_back_is_given_out_again_a_few_times() -> None:
    watch = watcher()
    times, now = [], 0.0
    for now in range(100):
        leases = {7: "a/1"} if now % 15 < 12 else {7: "b/1"}  # the second delivery is with another session, for a while
        times += [now for _ in watch.stragglers(leases, float(now), decided=99, total=101)]
    assert len(times) == 3
    assert watch.stragglers({7: "b/1"}, 200.0, decided=99, total=101) == [], "it has a second delivery"


def test_each_gets_one_twin_at_most_and_a_new_delivery_starts_anew() -> None:
    watch = watcher()
    watch.stragglers(LEASES, 0.0, decided=99, total=101)
    assert watch.stragglers({7: "a/1", 8: "c/1"}, 11.0, decided=99, total=101) == [(7, "a/1")]
    assert watch.stragglers({7: "a/1", 8: "c/1"}, 12.0, decided=99, total=101) == []


def test_without_a_finished_run_nothing_is_known() -> None:
    watch = Speculation()
    watch.stragglers(LEASES, 0.0, decided=0, total=0)
    assert watch.stragglers(LEASES, 1000.0, decided=0, total=0) == []
