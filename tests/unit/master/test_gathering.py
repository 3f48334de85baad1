"""How long a leader lets entries gather: the less the nearer the end of the job is, and never for long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.wire.progress import Progress
from parallelrun_master.policy.gathering import Gathering


@given(done=st.integers(0, 10**6), left=st.integers(0, 10**6), arrived=st.integers(0, 1000), passed_s=st.floats(0, 1e6))
def test_it_is_between_nothing_and_a_tenth_of_a_second(done: int, left: int, arrived: int, passed_s: float) -> None:
    gathering = Gathering(Progress(scheduled=done + left, done=done), 50.0)
    assert 0.0 <= gathering.wait_s(arrived, 50.0 + passed_s) <= 0.1


def test_the_last_outcomes_of_a_job_are_not_held_up() -> None:
    gathering = Gathering(Progress(scheduled=100, done=97), 50.0)
    assert gathering.wait_s(3, 60.0) == 0.0
    assert gathering.wait_s(2, 60.0) > 0.0


def test_it_gets_shorter_towards_the_end() -> None:
    progress = Progress(scheduled=1000)
    gathering = Gathering(progress, 50.0)
    waits = []
    for tenth in range(1, 10):
        progress.done = 100 * tenth
        waits.append(gathering.wait_s(1, 50.0 + 0.2 * tenth))
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < waits[0]
