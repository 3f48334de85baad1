"""What a leader shows of the nodes that its job waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.computes.catalog import Catalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.progress import Progress
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.provisioning import ComputeStatus, NodeStatus, Provisioning
from parallelrun_master.compute_watch import ComputeWatch, why_missing


def test_a_job_shows_how_many_nodes_it_has_and_what_the_others_wait_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pending = NodeStatus(node="n", stage="pending", since=0.0, words="Resources")
    known: list[ComputeStatus | None] = [None, ComputeStatus(at=99.0, wanted=9, nodes=[pending])]
    monkeypatch.setattr(Provisioning, "status", lambda *_: known[0] if len(known) == 1 else known.pop(0))
    said: list[str] = []
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": "cpus", "instance_count": 2})
    redis: Any = None
    Catalog(tmp_path).put(read_definition({"name": "cpus", "type": "manual"}))
    watch, progress = ComputeWatch(tmp_path, redis, spec, said.append, lambda: 100.0), Progress()
    seen = []
    for second, nodes in enumerate((0, 1, 1, 2)):
        watch.refresh(progress, nodes, float(second))
        seen.append((progress.nodes, progress.nodes_wanted, progress.nodes_why))
    assert seen == [
        (0, 2, "no provisioner has said anything of it"), (1, 2, "Resources"), (1, 2, "Resources"), (2, 2, ""),
    ]  # fmt: skip
    assert said == [
        "Provisioning nodes of compute 'cpus': no provisioner has said anything of it.",
        "Provisioning nodes of compute 'cpus': Resources.", "The nodes of compute 'cpus' are there.",
    ]  # fmt: skip


def test_a_job_whose_compute_was_deleted_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Provisioning, "status", lambda *_: None)
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": "cpus"})
    redis: Any = None
    watch, progress = ComputeWatch(tmp_path, redis, spec, lambda _: None, lambda: 100.0), Progress()
    watch.refresh(progress, 0, 0.0)
    assert progress.nodes_why == "it was deleted: define it again, or cancel the job"


@pytest.mark.parametrize(
    "status, words",
    [
        (ComputeStatus(at=60.0), "the provisioner has been silent for 40 s"),
        (ComputeStatus(at=100.0, why="no room", next_attempt=130.0), "no room; it is tried again in 30 s"),
        (ComputeStatus(at=100.0, why="no room"), "no room"),
        (ComputeStatus(at=100.0), ""),
    ],
)
def test_why_there_are_no_nodes(status: ComputeStatus, words: str) -> None:
    assert why_missing(status, 100.0) == words
