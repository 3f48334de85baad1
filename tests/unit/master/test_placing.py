"""Which nodes a job gets that asks for a number of them."""

from __future__ import annotations

from collections import Counter

from parallelrun_master.policy.placing import Place, chosen


def free(node: str) -> Place:
    return Place(node, has_room=True, is_used=False)


def full(node: str, *, is_used: bool = False) -> Place:
    return Place(node, has_room=False, is_used=is_used)


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
