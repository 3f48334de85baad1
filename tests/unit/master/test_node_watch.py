"""What a leader knows of the nodes that get ready for its job."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from parallelrun_core.spec import JobSpec
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_core.wire.states import NodeState
from parallelrun_master.leader.node_watch import NodeWatch
from parallelrun_master.policy.placing import Obstacle


def info(node: str, slots: int, state: NodeState = NodeState.READY, **workers: int) -> NodeInfo:
    return NodeInfo(
        node=node, session="", host="h", pid=1, slots=slots, busy=sum(workers.values()), state=state, version="0",
        started=0.0, workers=workers,
    )  # fmt: skip


def watch(*nodes: tuple[NodeInfo, bool], **settings: Any) -> NodeWatch:
    known: Any = SimpleNamespace(all=lambda: list(nodes))
    reaped = SimpleNamespace(sessions=0, returned=0, given_up=())
    queue: Any = SimpleNamespace(
        job_id="mine", reap=lambda **_: reaped, assign=(assignments := list[list[str]]()).append, assigned=list,
        assigned_to_others=dict, assignments=assignments,
    )  # fmt: skip
    spec = JobSpec.parse({"entry_script": "main.py", "inputs": "/data", **settings})
    return NodeWatch(known, queue, spec, SimpleNamespace(lease_ms=8000))  # type: ignore[arg-type]


def assignments_of(nodes: NodeWatch) -> list[list[str]]:
    """Each list of nodes that was assigned, in order."""
    queue: Any = nodes._queue
    assignments: list[list[str]] = queue.assignments
    return assignments


def test_a_node_makes_an_environment_until_a_worker_begins_or_nothing_more_is_heard() -> None:
    nodes = watch()
    nodes.prepares("a", 0.0)
    nodes.prepares("b", 1.0)
    assert nodes.preparing(2.0) == 2
    nodes.has_prepared("a")
    nodes.has_prepared("c")
    assert nodes.preparing(3.0) == 1
    assert nodes.preparing(100.0) == 0


def test_workers_are_those_of_all_nodes_and_slots_those_that_take_more() -> None:
    nodes = watch((info("a", 4), True), (info("b", 2, NodeState.DRAINING), True), (info("c", 9), False))
    nodes.check()
    assert (nodes.alive, nodes.slots, nodes.workers) == (2, 4, 6)
    few = watch((info("a", 4), True), (info("b", 4), True), max_concurrency_per_instance=1)
    few.check()
    assert (few.slots, few.workers, few.own_workers) == (2, 2, 2)
    chosen = watch((info("a", 4), True), (info("b", 4), True), instance_count=1)
    chosen.check()
    assert (chosen.alive, chosen.slots, chosen.workers, chosen.own_workers) == (1, 4, 8, 4)


@pytest.mark.parametrize("states, expected", [
    ([NodeState.DISK_FULL, NodeState.DISK_FULL], True),
    ([NodeState.DISK_FULL, NodeState.READY], False),
    ([], False),
])  # fmt: skip
def test_all_disks_are_full_when_no_node_that_lives_has_room(states: list[NodeState], expected: bool) -> None:
    known = watch(*[(info(f"n{number}", 2, state), True) for number, state in enumerate(states)], (info("z", 2), False))
    known.check()
    assert known.obstacles == ((Obstacle.DISK,) if expected else ())


FULL, FREE, OURS, OURS_TOO = {"other": 2}, {"other": 1}, {"mine": 2}, {"mine": 1, "other": 1}


@pytest.mark.parametrize("wanted, nodes, expected", [
    (None, [FULL, FULL], True),
    (None, [FULL, FREE], False),
    (None, [FULL, OURS], False),
    (None, [OURS_TOO], False),
    (None, [], False),
    (1, [FREE, FULL], False),
    (1, [FULL, FULL], True),
    (3, [FULL, FULL], True),
])  # fmt: skip
def test_nodes_are_taken_when_other_jobs_have_all_slots(
    wanted: int | None, nodes: list[dict[str, int]], expected: bool
) -> None:
    found = [(info(f"n{number}", 2, NodeState.READY, **workers), True) for number, workers in enumerate(nodes)]
    known = watch(*found, (info("z", 2, NodeState.DRAINING), True), instance_count=wanted)
    known.check()
    assert (Obstacle.SLOTS in known.obstacles) is expected
    assert known.has_place is any(workers is not FULL for workers in nodes)


def test_only_nodes_of_its_compute_count() -> None:
    mine = [(replace(info(name, 2), compute="mine"), True) for name in "ab"]
    others = [(replace(info("c", 8), compute="other"), True), (info("d", 8), True)]
    nodes = watch(*mine, *others, compute="mine", instance_count=3)
    nodes.check()
    assert (nodes.alive, nodes.slots) == (2, 4)
    without = watch(*mine, *others)
    without.check()
    assert (without.alive, without.slots) == (1, 8)


def test_jobs_that_ask_for_a_number_are_assigned_nodes_at_once() -> None:
    for_all = watch((info("a", 2), True))
    for_all.choose()
    assert (for_all.alive, assignments_of(for_all)) == (0, [])
    for_one = watch((info("a", 2), True), (info("b", 3), True), instance_count=1)
    for_one.choose()
    for_one.choose()
    for_one.check()
    assert assignments_of(for_one) == [["b"]]
    for_one.start_over()
    for_one.choose()
    assert assignments_of(for_one) == [["b"], ["b"]], "Redis may have forgotten them"


def test_no_node_begins_anything_while_none_has_been_chosen() -> None:
    nodes = watch(instance_count=1)
    nodes.choose()
    assert assignments_of(nodes) == [["-"]], "an empty list would mean every node"


def test_a_later_leader_keeps_the_nodes_that_its_predecessor_has_chosen() -> None:
    nodes = watch((info("a", 2), True), (info("b", 9), True), instance_count=1)
    queue: Any = nodes._queue
    queue.assigned = lambda: ["a"]
    nodes.check()
    assert assignments_of(nodes) == [["a"]]


def test_a_node_that_another_job_was_just_promised_is_not_the_freest() -> None:
    nodes = watch((info("a", 2), True), (info("b", 2), True), instance_count=1)
    queue: Any = nodes._queue
    first = watch((info("a", 2), True), (info("b", 2), True), instance_count=1)
    first.choose()
    [[promised]] = assignments_of(first)
    queue.assigned_to_others = lambda: {"first": frozenset({promised})}
    nodes.choose()
    assert assignments_of(nodes) == [["b" if promised == "a" else "a"]]


def test_a_lost_node_is_replaced() -> None:
    alive = [(info("a", 2), True), (info("b", 2), True), (info("c", 2), True)]
    nodes = watch(*alive, instance_count=2)
    known: Any = nodes._nodes
    known.all = lambda: alive
    nodes.check()
    [chosen] = assignments_of(nodes)
    alive[:] = [(node, node.node != chosen[0]) for node, _ in alive]
    nodes.check()
    assert chosen[1] in assignments_of(nodes)[1]
    assert (len(assignments_of(nodes)[1]), chosen[0] in assignments_of(nodes)[1]) == (2, False)


@pytest.mark.parametrize("gpus, settings, workers", [
    (0, {}, 8), (2, {}, 1), (2, {"workers_per_gpu": 3}, 6), (5, {"gpus_per_worker": 2}, 2),
    (2, {"max_concurrency_per_instance": 5}, 5),
    (0, {"max_concurrency_per_instance": 50}, 8),
])  # fmt: skip
def test_workers_on_a_node_are_as_many_as_its_agent_would_start(
    gpus: int, settings: dict[str, int], workers: int
) -> None:
    nodes = watch((replace(info("a", 8), gpu_count=gpus), True), **settings)
    nodes.check()
    assert nodes.own_workers == workers


def test_a_job_that_shares_gpus_goes_where_some_are() -> None:
    with_gpus = replace(info("a", 2), gpu_count=1)
    nodes = watch((with_gpus, True), (info("b", 64), True), instance_count=1, workers_per_gpu=2)
    nodes.choose()
    assert assignments_of(nodes) == [["a"]]


def test_a_job_whose_workers_have_several_gpus_goes_where_so_many_are() -> None:
    one, two = replace(info("a", 64), gpu_count=1), replace(info("b", 2), gpu_count=2)
    nodes = watch((one, True), (two, True), instance_count=1, gpus_per_worker=2)
    nodes.choose()
    assert assignments_of(nodes) == [["b"]]


def test_a_node_that_gets_what_workers_need_has_no_place_for_any() -> None:
    nodes = watch((info("a", 2), True))
    nodes.prepares("a", time.monotonic())
    nodes.check()
    assert (nodes.obstacles, nodes.has_place) == ((Obstacle.PREPARATION,), False)
    nodes.has_prepared("a")
    nodes.check()
    assert (nodes.obstacles, nodes.has_place) == ((), True)
