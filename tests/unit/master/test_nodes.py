"""What a leader knows of the nodes that get ready for its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from parallelrun_core.spec import JobSpec
from parallelrun_core.states import NodeState
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_master.nodes import NodeWatch


def info(node: str, slots: int, state: NodeState = NodeState.READY) -> NodeInfo:
    return NodeInfo(node=node, session="", host="h", pid=1, slots=slots, busy=0, state=state, version="0", started=0.0)


def watch(*nodes: tuple[NodeInfo, bool], **settings: Any) -> NodeWatch:
    known: Any = SimpleNamespace(all=lambda: list(nodes))
    reaped = SimpleNamespace(sessions=0, returned=0, given_up=0)
    queue: Any = SimpleNamespace(reap=lambda **_: reaped)
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
    nodes.look()
    assert (nodes.alive, nodes.slots, nodes.workers) == (2, 4, 6)
    few = watch((info("a", 4), True), (info("b", 4), True), max_concurrency_per_instance=1)
    few.look()
    assert (few.slots, few.workers) == (2, 2)


def test_a_node_of_a_later_release_in_a_state_unknown_here_takes_part() -> None:
    told = msgspec.json.encode(info("a", 4)).replace(b'"ready"', b'"half_asleep"')
    nodes = watch((msgspec.json.decode(told, type=NodeInfo), True))
    nodes.look()
    assert (nodes.alive, nodes.slots) == (1, 4)
