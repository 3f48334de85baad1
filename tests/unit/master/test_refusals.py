"""How a leader deals with entries that it refuses."""

from __future__ import annotations

import itertools

from parallelrun_master.policy.refusals import FIRST_PAUSE_S, LONGEST_PAUSE_S, Refusals


def test_a_flood_of_them_is_logged_less_and_less_often() -> None:
    refusals = Refusals()
    assert [number for number in range(1, 1001) if refusals.note()] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert refusals.count == 1000


def test_the_journals_are_asked_for_what_was_refused_at_ever_longer_intervals() -> None:
    refusals, asked, now = Refusals(), [], 100.0
    assert not refusals.are_to_be_mended(now)
    refusals.note()
    assert refusals.are_to_be_mended(now)
    assert not refusals.are_to_be_mended(now + 1000)
    while now < 100 + 10 * LONGEST_PAUSE_S:
        refusals.note()
        if refusals.are_to_be_mended(now):
            asked.append(now)
        now += 0.25
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (2 * FIRST_PAUSE_S, LONGEST_PAUSE_S)
