"""Which nodes are asked for and which go, in whole histories and in a large simulation."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.computes.launch import Shape
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_provisioner.policy.circuit_breaker import PAUSES_S, PROOF_S, CircuitBreaker, Verdict, verdict
from parallelrun_provisioner.policy.demand import Need, demand_of, nodes_for
from parallelrun_provisioner.policy.scaling import (
    LONGEST_S,
    LOST_S,
    MISSING_S,
    MOST_STARTING,
    NodePhase,
    PoolNode,
    ScalingActions,
    ScalingLimits,
    list_after_s,
    moves,
)

PLAIN = Shape()


def node(number: int, life: NodePhase, since: float = 0.0, **more: object) -> PoolNode:
    return PoolNode(id=f"n-{number}", life=life, since=since, **more)  # type: ignore[arg-type]


def decided(
    wanted: int, nodes: list[PoolNode], now: float = 100.0, *, least: int = 0, most: int = 10
) -> ScalingActions:
    limits = ScalingLimits(least=least, most=most, idle_s=10.0)
    return moves({PLAIN: wanted} if wanted else {}, limits, nodes, now, paused={})


def test_what_is_missing_is_asked_for_and_no_more_than_there_may_be() -> None:
    ready = [node(number, NodePhase.READY) for number in range(3)]
    assert len(decided(5, ready).launch) == 2
    assert len(decided(50, ready).launch) == 7
    lost = [node(number, NodePhase.LOST, 99.0) for number in range(4)]
    assert len(decided(50, [*ready, *lost]).launch) == 3, "a lost one may be there still"
    assert len(decided(0, [], least=2).launch) == 2


def test_only_nodes_that_were_idle_for_long_are_asked_to_leave_the_longest_first() -> None:
    nodes = [
        node(0, NodePhase.READY), node(1, NodePhase.READY, idle_since=85.0), node(2, NodePhase.READY, idle_since=80.0),
        node(3, NodePhase.READY, idle_since=95.0),
    ]  # fmt: skip
    assert decided(1, nodes).drain == ("n-2", "n-1")
    assert decided(1, nodes, least=3).drain == ("n-2",)
    assert decided(4, nodes).drain == ()


def test_what_has_not_started_is_withdrawn_first_the_latest_of_it() -> None:
    nodes = [node(0, NodePhase.PENDING, 1.0), node(1, NodePhase.PENDING, 2.0), node(2, NodePhase.STARTING, 3.0)]
    assert decided(2, nodes).withdraw == ("n-1",)
    assert decided(0, nodes).withdraw == ("n-0", "n-1")


def test_what_is_over_is_removed_and_what_never_came_has_failed() -> None:
    nodes = [
        node(0, NodePhase.ENDED, 100.0), node(1, NodePhase.LEFT, 0.0), node(2, NodePhase.LOST, 100.0 - LOST_S / 2),
        node(3, NodePhase.STARTING, -1000.0), node(4, NodePhase.ASKED, 0.0), node(5, NodePhase.ASKED, 99.0),
    ]  # fmt: skip
    done = decided(0, nodes)
    assert (done.remove, done.forget) == (("n-0", "n-1", "n-3"), ("n-4",))


def test_a_node_that_ends_soon_is_replaced_before_it_does() -> None:
    assert len(decided(1, [node(0, NodePhase.READY, ends_at=130.0)]).launch) == 1
    assert decided(1, [node(0, NodePhase.READY, ends_at=1000.0)]).launch == ()


@pytest.mark.parametrize(
    "life, idle_since",
    [(NodePhase.PENDING, None), (NodePhase.STARTING, None), (NodePhase.READY, None), (NodePhase.READY, 0.0)],
)
def test_who_takes_the_place_of_a_node_that_ends_soon_stays(life: NodePhase, idle_since: float | None) -> None:
    ends_soon = node(0, NodePhase.READY, ends_at=130.0)
    assert decided(1, [ends_soon, node(1, life, idle_since=idle_since)]) == ScalingActions(wanted=1)
    idle = replace(ends_soon, idle_since=0.0)
    assert decided(1, [idle, node(1, life, idle_since=idle_since)]).drain == ("n-0",), "it is needed no more"


def test_a_shape_that_can_not_be_had_leaves_its_room_to_others() -> None:
    broken = Shape(image="broken")
    limits, demand = ScalingLimits(least=0, most=4, idle_s=10.0), {broken: 4, PLAIN: 3}
    resting = moves(demand, limits, [], 100.0, paused={broken: 0})
    assert (resting.launch, resting.wanted) == ((PLAIN,) * 3, 4)
    assert moves(demand, limits, [], 100.0, paused={broken: 1}).launch == (broken, PLAIN, PLAIN, PLAIN)
    one = [node(0, NodePhase.READY, shape=broken, idle_since=0.0)]
    assert decided(0, one).drain == ("n-0",)
    assert moves({broken: 1}, limits, one, 100.0, paused={broken: 0}).drain == (), "what there is of it stays"


def test_warm_nodes_stay_while_a_job_waits_for_its_image() -> None:
    unbuilt, limits = Shape(image="unbuilt"), ScalingLimits(least=2, most=2, idle_s=10.0)
    warm = [node(number, NodePhase.READY, idle_since=0.0) for number in range(2)]
    assert moves({unbuilt: 1}, limits, warm, 100.0, paused={unbuilt: 0}) == ScalingActions(wanted=2)
    assert moves({unbuilt: 1}, limits, [], 100.0, paused={unbuilt: 0}).launch == (PLAIN, PLAIN)
    tried = moves({unbuilt: 1}, limits, warm, 100.0, paused={unbuilt: 1})
    assert len(tried.drain) == 1, "there is room for what is tried, and the other one stays"
    of_it = [replace(each, shape=unbuilt) for each in warm]
    assert moves({unbuilt: 1}, limits, of_it, 100.0, paused={unbuilt: 0}) == ScalingActions(wanted=2), (
        "what is there is kept"
    )


@given(
    st.integers(0, 4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 3)),
)
def test_what_can_not_be_had_never_ends_what_is_kept(
    least: int, more: int, there: int, wishes: tuple[int, bool, int]
) -> None:
    demand, is_plain_wanted, tries = wishes
    other, limits = Shape(image="other"), ScalingLimits(least=least, most=least + more, idle_s=10.0)
    nodes = [node(number, NodePhase.READY, idle_since=0.0) for number in range(min(there, limits.most))]
    wanted = {other: demand, **({PLAIN: 1} if is_plain_wanted else {})}
    done = moves(wanted, limits, nodes, 100.0, paused={other: tries})
    assert len(nodes) - len(done.drain) + done.launch.count(PLAIN) >= least - tries
    assert len(nodes) + len(done.launch) <= limits.most


@pytest.mark.parametrize(
    "life, known, expected",
    [
        (NodePhase.STARTING, {"is_over": True}, Verdict.FAILURE), (NodePhase.READY, {"lived_s": 5.0}, Verdict.OPEN),
        (NodePhase.READY, {"has_work": True}, Verdict.SUCCESS),
        (NodePhase.READY, {"lived_s": PROOF_S}, Verdict.SUCCESS),
        (NodePhase.ENDED, {"is_over": True, "lived_s": 5.0}, Verdict.FAILURE),
        (NodePhase.LOST, {"is_over": True, "lived_s": 5.0}, Verdict.FAILURE),
        (NodePhase.ENDED, {"is_over": True, "lived_s": PROOF_S}, Verdict.SUCCESS),
        (NodePhase.ENDED, {"is_over": True, "was_taken": True}, Verdict.NOTHING),
        (NodePhase.ENDED, {"is_over": True, "is_asked": True}, Verdict.NOTHING),
        (NodePhase.LEAVING, {"is_asked": True, "lived_s": 1.0}, Verdict.SUCCESS),
        (NodePhase.LEAVING, {"lived_s": 1.0}, Verdict.OPEN),
    ],
)  # fmt: skip
def test_a_launch_was_a_success_when_its_node_was_good_for_something(
    life: NodePhase, known: dict[str, Any], expected: Verdict
) -> None:
    given = {"lived_s": 0.0, "has_work": False, "is_asked": False, "is_over": False, "was_taken": False, **known}
    assert verdict(life, **given) is expected


def test_an_engine_is_asked_less_often_when_nothing_changes_or_it_is_slow() -> None:
    assert list_after_s(quiet_s=0.0, cost_s=0.0) == 0.0
    assert list_after_s(quiet_s=30.0, cost_s=0.01) == 3.0
    assert list_after_s(quiet_s=86_400.0, cost_s=0.01) == LONGEST_S
    assert list_after_s(quiet_s=0.0, cost_s=0.2) == pytest.approx(4.0)
    assert list_after_s(quiet_s=0.0, cost_s=9.0) == LONGEST_S < MISSING_S


def test_idle_nodes_of_another_shape_make_room_at_once() -> None:
    other = Shape(image="other")
    nodes = [node(0, NodePhase.READY, idle_since=99.0), node(1, NodePhase.READY, shape=other)]
    done = moves({other: 2}, ScalingLimits(least=0, most=2, idle_s=60.0), nodes, 100.0, paused={})
    assert (done.launch, done.drain) == ((), ("n-0",))
    shared = moves({PLAIN: 9, other: 1}, ScalingLimits(least=0, most=4, idle_s=60.0), [], 100.0, paused={})
    assert sorted(shape.image for shape in shared.launch) == ["", "", "", "other"]


@pytest.mark.parametrize(
    "state, count, progress, expected",
    [
        (JobState.QUEUED, None, {}, 1), (JobState.QUEUED, 3, {}, 3), (JobState.FINALIZING, 3, {"scheduled": 9}, 0),
        (JobState.PROCESSING, 3, {"scheduled": 1}, 3), (JobState.PROCESSING, None, {"scheduled": 9}, 5),
        (JobState.PROCESSING, 3, {"scheduled": 9, "listing_done": True}, 3),
        (JobState.PROCESSING, 3, {"scheduled": 9, "done": 7, "failed": 1, "listing_done": True}, 1),
        (JobState.PROCESSING, None, {"scheduled": 9, "done": 9, "listing_done": True}, 0),
    ],
)  # fmt: skip
def test_a_job_needs_no_more_nodes_than_it_can_keep_busy(
    state: JobState, count: int | None, progress: dict[str, int], expected: int
) -> None:
    need = Need(state=state, progress=Progress(**progress), instance_count=count, workers_per_node=None)  # type: ignore[arg-type]
    assert nodes_for(need, slots=2) == expected
    alone = replace(need, workers_per_node=1, state=JobState.PROCESSING, progress=Progress(scheduled=4))
    assert demand_of([alone, alone], 8) == {PLAIN: 2 * (count or 4)}


def test_pauses_grow_with_failures_that_are_not_of_one_attempt() -> None:
    backoff = CircuitBreaker()
    assert backoff.launches(0.0, most=7) == 7
    for number, pause_s in enumerate([*PAUSES_S, PAUSES_S[-1]]):
        now = 10_000.0 * (number + 1)
        backoff = backoff.failed(now, asked_at=now - 1, why="no room")
        backoff = backoff.failed(now, asked_at=now - 1, why="no room")
        assert (backoff.failures, backoff.next_at) == (number + 1, now + pause_s)
        assert backoff.launches(now + pause_s, most=7) == 1
        assert not pause_s or backoff.launches(now + pause_s - 1, most=7) == 0


# Histories


@dataclass
class World:
    """An engine and its nodes, which take their time; a step is a second."""

    chance: random.Random
    limits: ScalingLimits
    start_s: tuple[float, float] = (1.0, 5.0)
    fails: float = 0.0
    dies: float = 0.0
    now: float = 0.0
    nodes: dict[str, PoolNode] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    """Launches, in all."""
    idle_s: float = 0.0
    node_s: float = 0.0

    def step(self, wanted: int, busy: int) -> ScalingActions:
        """One second.

        Args:
            wanted: nodes that jobs ask for.
            busy: nodes that have work in hand, if there are so many.
        """
        self.now += 1.0
        for each, at in list(self.until.items()):
            if self.now >= at:
                self._next(each)
        ready = [node for node in self.nodes.values() if node.life is NodePhase.READY]
        ready.sort(key=lambda node: node.since)
        for number, one in enumerate(ready):
            idle_since = None if number < busy else one.idle_since if one.idle_since is not None else self.now
            if idle_since != one.idle_since:
                self.nodes[one.id] = replace(one, idle_since=idle_since)
            if self.dies and self.chance.random() < self.dies:
                self._become(one.id, NodePhase.ENDED)
        self.node_s += len(ready)
        self.idle_s += max(0, len(ready) - busy)
        done = moves({PLAIN: wanted}, self.limits, list(self.nodes.values()), self.now, paused={})
        self._carry_out(done)
        return done

    def _carry_out(self, done: ScalingActions) -> None:
        assert not [each for each in done.drain if self.nodes[each].idle_since is None], "it has work in hand"
        for each in done.drain:
            self._become(each, NodePhase.LEAVING, self.chance.uniform(0.5, 2))
        for each in (*done.remove, *done.withdraw, *done.forget):
            self.nodes.pop(each)
            self.until.pop(each, None)
        for shape in done.launch:
            self.asked += 1
            each = f"n-{self.asked}"
            self.nodes[each] = PoolNode(id=each, life=NodePhase.PENDING, since=self.now, shape=shape)
            self.until[each] = self.now + self.chance.uniform(*self.start_s)
        there = [node for node in self.nodes.values() if node.life is not NodePhase.ENDED]
        assert len(there) <= self.limits.most

    def _next(self, each: str) -> None:
        del self.until[each]
        failed = self.nodes[each].life is NodePhase.PENDING and self.chance.random() < self.fails
        to = {NodePhase.PENDING: NodePhase.ENDED if failed else NodePhase.READY, NodePhase.LEAVING: NodePhase.ENDED}
        self._become(each, to[self.nodes[each].life])

    def _become(self, each: str, life: NodePhase, lasts_s: float = 0.0) -> None:
        self.nodes[each] = replace(self.nodes[each], life=life, since=self.now, idle_since=None)
        if lasts_s:
            self.until[each] = self.now + lasts_s

    def count(self, life: NodePhase) -> int:
        return sum(node.life is life for node in self.nodes.values())


@given(
    st.integers(0, 3), st.integers(0, 9), st.floats(0, 30), st.integers(0, 2**20),
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14), st.integers(1, 60)), max_size=6),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_a_compute_keeps_its_limits_whatever_jobs_want_and_comes_to_rest(
    least: int, more: int, idle_s: float, seed: int, wishes: list[tuple[int, int, int]]
) -> None:
    limits = ScalingLimits(least=least, most=max(1, least + more), idle_s=idle_s)
    world = World(random.Random(seed), limits, fails=0.1, dies=0.01)
    for wanted, busy, seconds in wishes:
        for _ in range(seconds):
            world.step(wanted, min(busy, wanted))
    world.fails = world.dies = 0.0
    for _ in range(120):
        world.step(5, 5)
    expected = min(limits.most, max(least, 5))
    asked = world.asked
    for _ in range(30):
        world.step(5, 5)
        assert world.count(NodePhase.READY) >= expected, "never below what is wanted"
        assert world.count(NodePhase.READY) + world.count(NodePhase.LEAVING) <= limits.most
    assert world.asked == asked, "nothing is asked for and given back again and again"
    for _ in range(120):
        world.step(0, 0)
    assert world.count(NodePhase.READY) == len(world.nodes) == least


def test_a_thousand_nodes_come_and_go_with_little_idle_time() -> None:
    """Three jobs in a row, each with noise in how long launches and mini-batches take."""
    world = World(random.Random(7), ScalingLimits(least=0, most=1000, idle_s=10.0), start_s=(20.0, 90.0))
    for seconds in (900, 600, 1200):
        for _ in range(seconds):
            done = world.step(1000, 1000)
            assert len(done.launch) <= MOST_STARTING
        for _ in range(110):
            world.step(0, 0)
    assert world.count(NodePhase.READY) == 0
    assert world.asked <= 3 * 1000
    assert world.idle_s / world.node_s <= 0.02
