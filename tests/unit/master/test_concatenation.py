"""When a leader asks for a concatenation: at once, again when one is gone, never beside one that lives."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_master.policy.concatenation import ConcatenationPolicy, ConcatenationStep

Event = Literal["alive", "died", "full", "trouble", "nothing"]
GONE_S, AGAIN_S = 5.0, 15.0


class History:
    """What happens to one job, a moment after the other."""

    def __init__(self) -> None:
        self.policy = ConcatenationPolicy(7)
        self.now = 100.0
        self.crashes = self.troubles = 0
        self.attempts: list[str] = []
        self.is_queued = False

    def happens(self, event: Event) -> ConcatenationStep:
        match event:
            case "alive":
                self.policy.alive(self.now)
            case "died":
                self.crashes += 1
                self.policy.died(self.now, crashes=self.crashes)
            case "full":
                self.policy.postponed(self.now)
            case "trouble":
                self.troubles += 1
                self.policy.postponed(self.now, problem="Input/output error", troubles=self.troubles)
        step = self.policy.tick(self.now)
        if step is ConcatenationStep.ASK:
            self.attempts.append(self.policy.ask(self.now, is_queued=self.is_queued and self.policy.attempt != ""))
        return step


events = st.tuples(
    st.sampled_from(["alive", "died", "full", "trouble", "nothing"]), st.sampled_from([0.0, 0.1, 1.0, 4.9, 20.0])
)


@given(story=st.lists(events, max_size=60))
def test_it_asks_again_for_what_is_gone_and_never_beside_what_lives(story: list[tuple[Event, float]]) -> None:
    history = History()
    assert history.happens("nothing") is ConcatenationStep.ASK
    asked_at, seen_at = history.now, -GONE_S
    for event, passed_s in story:
        history.now += passed_s
        if event == "alive":
            seen_at = history.now
        elif event != "nothing":
            asked_at, seen_at = -AGAIN_S, -GONE_S
        step = history.happens(event)
        if step is ConcatenationStep.GIVE_UP:
            assert history.crashes == 5 or history.troubles == 30
            assert history.policy.problem
            return
        assert history.crashes < 5
        assert history.troubles < 30
        if step is ConcatenationStep.ASK:
            assert history.now >= asked_at + AGAIN_S
            assert history.now >= seen_at + GONE_S
            asked_at = history.now
    history.now += AGAIN_S + GONE_S
    assert history.happens("nothing") is ConcatenationStep.ASK, "it doesn't wait for ever"
    assert len(set(history.attempts)) == len(history.attempts)


def test_after_each_failure_it_waits_longer_up_to_a_quarter_of_a_minute() -> None:
    policy = ConcatenationPolicy(7)
    pauses = [policy.postponed(0.0) for _ in range(9)]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]
    assert (policy.tick(14.9), policy.tick(15.0)) == (ConcatenationStep.WAIT, ConcatenationStep.ASK)


def test_what_waits_is_asked_for_under_the_same_name_and_what_died_is_not() -> None:
    history = History()
    history.happens("nothing")
    history.is_queued = True
    history.now += AGAIN_S
    history.happens("nothing")
    assert history.attempts == ["7-1", "7-1"]
    history.happens("died")
    assert history.policy.attempt == ""
    history.now += AGAIN_S
    history.happens("nothing")
    assert history.attempts == ["7-1", "7-1", "7-2"]


@pytest.mark.parametrize("event, times, problem", [
    ("died", 5, "died 5 times before it finished"), ("trouble", 30, "Input/output error"), ("full", 1000, ""),
])  # fmt: skip
def test_it_gives_up_after_five_deaths_or_thirty_troubles_and_never_for_a_full_disk(
    event: Event, times: int, problem: str
) -> None:
    history = History()
    for _ in range(times - 1):
        assert history.happens(event) is not ConcatenationStep.GIVE_UP
        history.now += AGAIN_S
    assert (history.happens(event) is ConcatenationStep.GIVE_UP) is bool(problem)
    assert problem in history.policy.problem
    history.now += AGAIN_S
    assert history.happens("nothing") is (ConcatenationStep.GIVE_UP if problem else ConcatenationStep.ASK)
