"""What a leader knows of the nodes that get ready for its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from parallelrun_core.spec import JobSpec
from parallelrun_core.states import NodeState
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_master.node_watch import NodeWatch


def info(node: str, slots: int, state: NodeState = NodeState.READY, **workers: int) -> NodeInfo:
    return NodeInfo(
        node=node, session="", host="h", pid=1, slots=slots, busy=sum(workers.values()), state=state, version="0",
        started=0.0, workers=workers,
    )  # fmt: skip


def watch(*nodes: tuple[NodeInfo, bool], **settings: Any) -> NodeWatch:
    known: Any = SimpleNamespace(all=lambda: list(nodes))
    reaped = SimpleNamespace(sessions=0, returned=0, given_up=())
    queue: Any = SimpleNamespace(job_id="mine", reap=lambda **_: reaped, assign=lambda chosen: None)
    spec = JobSpec.parse({"entry_script": "main.py", "inputs": "/data", **settings})
    return NodeWatch(known, queue, spec, SimpleNamespace(lease_ms=8000))  # type: ignore[arg-type]


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
    assert (chosen.slots, chosen.workers, chosen.own_workers) == (8, 8, 4)


@pytest.mark.parametrize("states, expected", [
    ([NodeState.DISK_FULL, NodeState.DISK_FULL], True),
    ([NodeState.DISK_FULL, NodeState.READY], False),
    ([], False),
])  # fmt: skip
def test_all_disks_are_full_when_no_node_that_lives_has_room(states: list[NodeState], expected: bool) -> None:
    known = watch(*[(info(f"n{number}", 2, state), True) for number, state in enumerate(states)], (info("z", 2), False))
    known.check()
    assert known.are_full is expected


FULL, FREE, OURS, OURS_TOO = {"other": 2}, {"other": 1}, {"mine": 2}, {"mine": 1, "other": 1}


@pytest.mark.parametrize("wanted, nodes, expected", [
    (None, [FULL, FULL], True),
    (None, [FULL, FREE], False),
    (None, [FULL, OURS], False),
    (None, [OURS_TOO], False),
    (None, [], False),
    (1, [FREE, FULL], False),
    (1, [FULL, FULL], True),
    (3, [FULL, FULL], False),
])  # fmt: skip
def test_nodes_are_taken_when_other_jobs_have_all_slots(
    wanted: int | None, nodes: list[dict[str, int]], expected: bool
) -> None:
    found = [(info(f"n{number}", 2, NodeState.READY, **workers), True) for number, workers in enumerate(nodes)]
    known = watch(*found, (info("z", 2, NodeState.DISK_FULL), True), instance_count=wanted)
    known.check()
    assert known.are_taken is expected
    assert known.has_own is any(workers is not FULL for workers in nodes)


def test_only_nodes_of_its_compute_count() -> None:
    mine = [(replace(info(name, 2), compute="mine"), True) for name in "ab"]
    others = [(replace(info("c", 8), compute="other"), True), (info("d", 8), True)]
    nodes = watch(*mine, *others, compute="mine", instance_count=3)
    nodes.check()
    assert (nodes.alive, nodes.slots) == (2, 4)
    without = watch(*mine, *others)
    without.check()
    assert (without.alive, without.slots) == (1, 8)
