"""Which nodes a job gets that asks for a number of them."""

from __future__ import annotations

from collections import Counter

from parallelrun_master.policy.placing import NodePlace, Obstacle, all_obstacles, chosen


def free(node: str) -> NodePlace:
    return NodePlace(node, free=2, is_used=False)


def full(node: str, *, is_used: bool = False) -> NodePlace:
    return NodePlace(node, free=0, is_used=is_used)


def test_a_job_gets_as_many_nodes_as_it_asks_for_and_stays_there() -> None:
    ready = [free(f"n{number}") for number in range(5)]
    first = chosen("job", ready, (), 2)
    assert len(set(first)) == 2
    assert chosen("job", ready[::-1], first, 2) == first
    assert set(chosen("job", ready, first, 9)) == {place.node for place in ready}
    assert chosen("job", [], first, 2) == []


def test_a_node_that_is_gone_is_replaced_and_the_others_are_kept() -> None:
    ready = [free(f"n{number}") for number in range(5)]
    first = chosen("job", ready, (), 3)
    left = [place for place in ready if place.node != first[0]]
    assert set(first[1:]) < set(chosen("job", left, first, 3))


def test_many_small_jobs_are_spread_over_the_nodes() -> None:
    ready = [free(f"n{number}") for number in range(4)]
    counts = Counter(chosen(f"job_{number}", ready, (), 1)[0] for number in range(400))
    assert len(counts) == 4
    assert min(counts.values()) > 50


def test_a_job_that_has_not_begun_leaves_a_full_node_for_one_with_room() -> None:
    assert chosen("job", [full("a"), free("b")], ["a"], 1) == ["b"]
    assert chosen("job", [full("a"), full("b")], ["a"], 1) == ["a"]
    assert chosen("job", [full("a", is_used=True), free("b")], ["a"], 1) == ["a"]
    assert chosen("job", [free("a"), free("b")], ["a"], 1) == ["a"]


def test_a_job_gets_the_freest_node_and_stays_there() -> None:
    ready = [NodePlace("a", 1, is_used=False), NodePlace("b", 4, is_used=False), NodePlace("c", 2, is_used=False)]
    assert chosen("job", ready, (), 2) == ["b", "c"]
    assert chosen("job", ready, ["a"], 1) == ["a"]
    assert chosen("job", [*ready, NodePlace("d", 0, is_used=True)], ["b"], 1) == ["d"]


def test_a_job_whose_workers_share_gpus_gets_nodes_that_have_some() -> None:
    ready = [
        NodePlace("a", 8, is_used=False, fits=False),
        NodePlace("b", 0, is_used=False),
        NodePlace("c", 1, is_used=False),
    ]
    assert chosen("job", ready, (), 2) == ["c", "b"]


def test_obstacles_are_those_of_all_nodes_or_none() -> None:
    assert all_obstacles([]) == ()
    assert all_obstacles([Obstacle.DISK, None]) == ()
    assert all_obstacles([Obstacle.DISK, Obstacle.SLOTS, Obstacle.DISK]) == (Obstacle.DISK, Obstacle.SLOTS)
