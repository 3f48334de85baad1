"""What a node reports of itself, and when."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from parallelrun_agent.heartbeats import Heartbeats
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry, NodeRequests
from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.states import NodeState

BUSY = SimpleNamespace(in_flight=["mini-batch"], is_through_init=True)
IDLE = SimpleNamespace(in_flight=[], is_through_init=True)
STARTING = SimpleNamespace(in_flight=[], is_through_init=False)


def job_with(workers: list[SimpleNamespace], **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(workers=workers, disk_is_full=False, owner="", work=lambda *_: NodeWork(), **fields)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[NodeInfo]:
    beats: list[NodeInfo] = []

    def beat(_: NodeRegistry, info: NodeInfo, lease_ms: int) -> NodeRequests:
        beats.append(info)
        return NodeRequests(None, leave=len(beats) > 1, stacks=[])

    monkeypatch.setattr(NodeRegistry, "beat", beat)
    return beats


def heartbeats_of(root: Path, jobs: dict[str, Any]) -> Heartbeats:
    return Heartbeats(Mock(), AgentSettings(root=root, node="n1", slots=4, lease_seconds=8), jobs)


def test_a_node_beats_four_times_in_a_lease_and_at_once_when_its_state_changes(
    tmp_path: Path, sent: list[NodeInfo]
) -> None:
    job = job_with([BUSY, BUSY])
    heartbeats = heartbeats_of(tmp_path, {"job_a": job})
    assert [now for now in range(9) if heartbeats.is_due(float(now))] == [0, 2, 4, 6, 8]
    heartbeats.beat()
    heartbeats.check_state()
    assert not heartbeats.is_due(8.1), "nothing has changed"
    job.disk_is_full = True
    heartbeats.check_state()
    assert heartbeats.is_due(8.1)
    heartbeats.beat()
    heartbeats.is_draining = True
    heartbeats.check_state()
    assert heartbeats.is_due(8.2)
    heartbeats.beat()
    assert [info.state for info in sent] == [NodeState.READY, NodeState.DISK_FULL, NodeState.DRAINING]


def test_a_heartbeat_says_which_jobs_have_how_many_workers(tmp_path: Path, sent: list[NodeInfo]) -> None:
    jobs = {
        "job_b": job_with([BUSY, BUSY]),
        "job_a": job_with([], is_prepared=True),
    }
    heartbeats_of(tmp_path, jobs).beat()
    assert (sent[0].jobs, sent[0].workers, sent[0].busy, sent[0].slots) == (["job_a", "job_b"], {"job_b": 2}, 2, 4)


@pytest.mark.parametrize("workers, is_prepared, expected", [
    ([], True, 0), ([], False, 1), ([IDLE], True, 0), ([IDLE, BUSY, STARTING], True, 2),
])  # fmt: skip
def test_in_hand_is_what_is_done_here_and_not_what_is_waited_for(
    tmp_path: Path, sent: list[NodeInfo], workers: list[SimpleNamespace], is_prepared: bool, expected: int
) -> None:
    job = job_with(workers, is_prepared=is_prepared)
    heartbeats_of(tmp_path, {"job": job}).beat()
    assert sent[0].in_hand == expected


def test_a_node_hears_that_it_shall_leave_and_says_whose_it_is(tmp_path: Path, sent: list[NodeInfo]) -> None:
    settings = AgentSettings(root=tmp_path, node="n1", compute="cpu-cluster", ends_at=1e9)
    heartbeats = Heartbeats(Mock(), settings, {})
    heard = []
    for _ in range(2):
        heartbeats.beat()
        heard.append(heartbeats.is_asked_to_leave)
    assert heard == [False, True]
    assert (sent[0].compute, sent[0].ends_at) == ("cpu-cluster", 1e9)


def test_a_node_without_jobs_is_measured_less_often(
    tmp_path: Path, sent: list[NodeInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: dict[str, Any] = {}
    heartbeats = heartbeats_of(tmp_path, jobs)
    use = Mock(return_value="measured")
    monkeypatch.setattr(heartbeats._usage, "now", use)
    for _ in range(3):
        heartbeats.beat()
    assert use.call_count == 1
    assert [str(info.usage) for info in sent] == ["measured"] * 3
    jobs["job"] = job_with([], is_prepared=True)
    for _ in range(3):
        heartbeats.beat()
    assert use.call_count == 4
