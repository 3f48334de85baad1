"""The pace of a job counts what is decided in its last run, in the last minutes."""

from __future__ import annotations

import pytest

from parallelrun_core.wire import pace
from parallelrun_core.wire.pace import Standing, standing_of
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.pace import WINDOW_S, PaceKeeper

QUEUED_AT = 1000.0


def progress(decided: int, *, running: int = 0) -> Progress:
    return Progress(
        scheduled=200,
        published=200,
        listing_done=True,
        items_scheduled=200,
        done=decided,
        items_done=decided,
        running=running,
    )


def noted(kept: PaceKeeper, counts: Progress, decided: int, now: float) -> Progress:
    counts.done = counts.items_done = decided
    kept.note(counts, now)
    return counts


def test_pace_of_a_resumed_job_leaves_out_what_was_decided_before() -> None:
    counts = progress(20)
    kept = PaceKeeper(
        counts, earlier=Progress(queued_at=QUEUED_AT - 500, worked_from=QUEUED_AT - 400), queued_at=QUEUED_AT
    )
    kept.note(counts, QUEUED_AT + 1)
    assert pace.items_per_s(counts, QUEUED_AT + 2) is None
    assert pace.waited_s(counts, QUEUED_AT + 2) == 2

    counts.running = 2
    kept.note(counts, QUEUED_AT + 10)
    noted(kept, counts, 24, QUEUED_AT + 20)
    now = QUEUED_AT + 20
    assert (pace.waited_s(counts, now), pace.ran_s(counts, now)) == (10, 10)
    assert pace.items_per_s(counts, now) == pytest.approx(0.4)
    assert pace.left_s(counts, now) == pytest.approx((200 - 24) / 0.4)
    assert pace.overall_items_per_s(counts, now) == pytest.approx(0.4)


def test_pace_of_a_leader_that_takes_over_goes_on_from_when_the_job_began_to_work() -> None:
    earlier = Progress(queued_at=QUEUED_AT, worked_from=QUEUED_AT + 5, decided_before=20, items_before=20)
    counts = progress(60)
    PaceKeeper(counts, earlier, QUEUED_AT).note(counts, QUEUED_AT + 45)
    assert (counts.worked_from, counts.decided_before) == (QUEUED_AT + 5, 20)
    assert pace.overall_items_per_s(counts, QUEUED_AT + 45) == pytest.approx(1)


def test_pace_follows_the_last_minutes_and_falls_while_nothing_is_decided() -> None:
    counts = progress(0, running=2)
    kept = PaceKeeper(counts, Progress(), QUEUED_AT)
    for second in range(400):
        noted(kept, counts, min(second, 100) if second < 300 else (second - 300) // 2 + 100, QUEUED_AT + second)
    now = QUEUED_AT + 399
    assert pace.items_per_s(counts, now) == pytest.approx(0.5, rel=0.2)
    assert counts.recent_to - counts.recent_from == pytest.approx(WINDOW_S, abs=90)
    later = pace.items_per_s(counts, now + 600)
    assert later is not None
    assert later < 0.1


def test_pace_begins_anew_where_decisions_are_lost() -> None:
    counts = progress(0, running=2)
    kept = PaceKeeper(counts, Progress(), QUEUED_AT)
    noted(kept, counts, 50, QUEUED_AT + 10)
    noted(kept, counts, 40, QUEUED_AT + 20)
    noted(kept, counts, 50, QUEUED_AT + 30)
    assert counts.recent_mini_batches == 10


@pytest.mark.parametrize(
    "fields, standing",
    [
        ({}, Standing.WAITING_FOR_WORKERS),
        ({"workers": 2}, Standing.STARTING),
        ({"preparing": 1}, Standing.STARTING),
        ({"workers": 2, "running": 1, "worked_from": 1.0}, Standing.RUNNING),
        ({"workers": 2, "worked_from": 1.0}, Standing.RUNNING),
        ({"published": 0}, Standing.RUNNING),
        ({"queued_at": 0.0}, Standing.RUNNING),
    ],
)
def test_standing_tells_waiting_from_working(fields: dict[str, float], standing: Standing) -> None:
    counts = Progress(**{"scheduled": 9, "published": 9, "queued_at": 1.0, **fields})  # type: ignore[arg-type]
    assert standing_of(JobState.PROCESSING, counts) is standing
    assert standing_of(JobState.QUEUED, counts) is Standing.QUEUED
    assert standing_of(JobState.CANCELED, counts, is_paused=True) is Standing.ENDED
    assert standing_of(JobState.PROCESSING, counts, is_paused=True) is Standing.PAUSED


def test_time_left_knows_the_mini_batch_that_runs_for_longest() -> None:
    now = QUEUED_AT + 100
    counts = progress(199, running=4)
    counts.recent_from, counts.recent_to = QUEUED_AT, now
    counts.recent_mini_batches = counts.recent_items = 199
    usual_s = 4 / (199 / 100)
    assert pace.left_s(counts, now) == pytest.approx(100 / 199)
    counts.longest, counts.longest_since = 17, now - 1
    assert pace.left_s(counts, now) == pytest.approx(usual_s - 1)
    counts.longest_since = now - 60
    assert pace.left_s(counts, now) == pytest.approx(60), "it may take as long again"
    many = progress(20, running=4)
    many.recent_from, many.recent_to, many.recent_mini_batches, many.recent_items = QUEUED_AT, now, 20, 20
    many.longest, many.longest_since = 17, now - 60
    assert pace.left_s(many, now) == pytest.approx(180 / (20 / 100)), "the others take longer than it"


def test_time_left_stands_still_while_all_workers_are_in_the_middle_of_a_mini_batch() -> None:
    """Four workers, 24 mini-batches of 55 s each: six rounds, all of them decided at once at the end of each."""
    counts = progress(0, running=4)
    counts.scheduled = counts.items_scheduled = 24
    kept = PaceKeeper(counts, Progress(), QUEUED_AT)
    kept.note(counts, QUEUED_AT)
    for rounds in (1, 2):
        noted(kept, counts, 4 * rounds, QUEUED_AT + 55 * rounds)
    for since in (0, 20, 50):
        now = QUEUED_AT + 110 + since
        left_s = pace.left_s(counts, now)
        assert left_s is not None
        assert now + left_s == pytest.approx(QUEUED_AT + 6 * 55, abs=1), f"{since} s after the last decision"
        assert pace.items_per_s(counts, now) == pytest.approx(4 / 55)
    hangs = pace.left_s(counts, QUEUED_AT + 110 + 300)
    assert hangs is not None
    assert hangs > 4 * 55, "nothing was decided for much longer than a mini-batch takes"
