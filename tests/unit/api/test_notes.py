"""What a server says of a job that asks for more than there is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from parallelrun_api.submission.notes import notes_on_size
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_core.wire.states import NodeState


def node(name: str, slots: int, **fields: Any) -> NodeInfo:
    return NodeInfo(
        node=name, session="s", host="h", pid=1, slots=slots, busy=0, state=NodeState.READY, version="0", started=0.0,
        **fields,
    )  # fmt: skip


COMPUTES: Any = SimpleNamespace(names=lambda: ["cpus"], get=lambda _: SimpleNamespace(max_instances=4))
NODES: Any = SimpleNamespace(
    all=lambda: [
        (node("a", 2), True), (node("b", 2, most_slots=6), True), (node("gone", 1), False),
        (node("c", 8, compute="cpus"), True),
    ]
)  # fmt: skip


@pytest.mark.parametrize("job, words", [
    ({}, []),
    ({"max_concurrency_per_instance": 2, "instance_count": 2}, []),
    ({"max_concurrency_per_instance": 5}, ["/max_concurrency_per_instance: ", "asks for 5", "have 2 to 5 slots"]),
    ({"max_concurrency_per_instance": 5}, ["(more: --processes N of `parallelrun up`"]),
    ({"max_concurrency_per_instance": 9, "compute": "cpus"}, ["asks for 9", "have 8 slots"]),
    ({"max_concurrency_per_instance": 9, "compute": "cpus"}, ["(more: `slots` of compute 'cpus'"]),
    ({"instance_count": 3}, ["/instance_count: nodes that are there now: 2"]),
    ({"instance_count": 5, "compute": "cpus"}, ["/instance_count: compute 'cpus' has 4 nodes at most"]),
    ({"instance_count": 4, "compute": "cpus"}, []),
    ({"instance_count": 4, "compute": "unknown"}, []),
    ({"steps": {"s": {"job": {"instance_count": 3}}, "other": {"type": "if_else"}}}, ["/steps/s/job/instance_count: "]),
])  # fmt: skip
def test_a_job_that_asks_for_more_than_there_is_is_noted(job: dict[str, Any], words: list[str]) -> None:
    notes = notes_on_size(job, COMPUTES, NODES)
    assert len(notes) == bool(words)
    assert all(word in notes[0] for word in words)
