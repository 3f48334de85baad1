"""What a leader shows of the nodes that its job waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.provisioning import ImageBuild, NodeStatus, Pause, Provisioning, ProvisioningStatus
from parallelrun_core.wire.progress import Progress
from parallelrun_master.leader.compute_watch import ComputeWatch, why_missing
from parallelrun_master.policy.completion import Completion
from parallelrun_master.policy.error_groups import ErrorGroups

PAUSE = Pause(failures=2, failed_at=70.0, why="no room", next_attempt=130.0)


def test_a_job_shows_how_many_nodes_it_has_and_what_the_others_wait_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pending = NodeStatus(node="n", stage="pending", since=0.0, words="Resources")
    known: list[ProvisioningStatus | None] = [None, ProvisioningStatus(at=99.0, wanted=9, nodes=[pending])]
    monkeypatch.setattr(Provisioning, "status", lambda *_: known[0] if len(known) == 1 else known.pop(0))
    said: list[str] = []
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": "cpus", "instance_count": 2})
    redis: Any = None
    ComputeCatalog(tmp_path).define(read_definition({"name": "cpus", "type": "manual"}))
    watch, progress = ComputeWatch(tmp_path, redis, spec, said.append, lambda: 100.0), Progress()
    seen = []
    for second, nodes in enumerate((0, 1, 1, 2)):
        watch.refresh(progress, nodes, float(second))
        seen.append((progress.nodes, progress.nodes_wanted, progress.nodes_why))
    assert seen == [
        (0, 2, "people start its nodes: `parallelrun-agent --compute cpus`"),
        (1, 2, "Resources"), (1, 2, "Resources"), (2, 2, ""),
    ]  # fmt: skip
    assert said == [
        "Provisioning nodes of compute 'cpus': people start its nodes: `parallelrun-agent --compute cpus`.",
        "Provisioning nodes of compute 'cpus': Resources.", "The nodes of compute 'cpus' are there.",
    ]  # fmt: skip


def test_a_job_waits_for_no_more_nodes_than_its_compute_may_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Provisioning, "status", lambda *_: ProvisioningStatus(at=99.0, wanted=2))
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": "cpus", "instance_count": 5})
    redis: Any = None
    ComputeCatalog(tmp_path).define(read_definition({"name": "cpus", "type": "local", "max_instances": 2}))
    said: list[str] = []
    watch, progress = ComputeWatch(tmp_path, redis, spec, said.append, lambda: 100.0), Progress()
    for second, nodes in enumerate((1, 2)):
        watch.refresh(progress, nodes, float(second))
        assert (progress.nodes, progress.nodes_wanted) == (nodes, 2)
    assert said[-1] == "The nodes of compute 'cpus' are there."


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
        (ProvisioningStatus(at=60.0), "the provisioner has been silent for 40 s"),
        (ProvisioningStatus(at=100.0, pauses={"": PAUSE}), "no room; it is tried again in 30 s"),
        (ProvisioningStatus(at=130.0, pauses={"": PAUSE}), "no room"),
        (ProvisioningStatus(at=100.0, why="no room", pauses={"another": PAUSE}), ""),
        (ProvisioningStatus(at=100.0, why="it is away", trouble="it is away", pauses={"": PAUSE}), "it is away"),
        (ProvisioningStatus(at=100.0), ""),
    ],
)
def test_why_there_are_no_nodes(status: ProvisioningStatus, words: str) -> None:
    assert why_missing(status, max(100.0, status.at), "") == words


BUILT = "azureml:code/" + "a" * 64


@pytest.mark.parametrize(
    "times, failure, nodes, has_failed",
    [
        ((101.0, 100.5), "no such base", 0, True),
        ((101.0, 0.0), "no such base", 0, True),
        ((101.0, 90.0), "no such base", 0, False),
        ((99.0, 0.0), "no such base", 0, False),
        ((101.0, 0.0), "", 0, False),
        ((101.0, 100.5), "no such", 1, False),
    ],
)
def test_a_job_fails_with_its_image_unless_that_was_before_it_came(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    times: tuple[float, float],
    failure: str,
    nodes: int,
    *,
    has_failed: bool,
) -> None:
    environment = {"build": {"path": BUILT}}
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": "cpus", "environment": environment})
    at, failed_at = times
    build = ImageBuild(said="Step 1/9", failure=failure, failed_at=failed_at)
    status = ProvisioningStatus(at=at, wanted=2, builds={spec.environment.node_image: build})
    monkeypatch.setattr(Provisioning, "status", lambda *_: status)
    redis: Any = None
    watch, progress = ComputeWatch(tmp_path, redis, spec, lambda _: None, lambda: 100.0), Progress()
    watch.refresh(progress, nodes, 0.0)
    assert (watch.failure is not None) is has_failed
    assert progress.nodes_why == (failure or "Step 1/9")
    if watch.failure is not None:
        assert (watch.failure.code, watch.failure.first_cause) == ("IMAGE_FAILED", "no such base")


@pytest.mark.parametrize(
    "status, is_waiting",
    [
        (ProvisioningStatus(at=0.0, wanted=1, launching=1), True),
        (ProvisioningStatus(at=0.0, wanted=1, pauses={"": PAUSE}), True),
        (ProvisioningStatus(at=0.0, wanted=2, ready=2), True),
        (ProvisioningStatus(at=0.0, wanted=1, builds={"": ImageBuild(said="building its image: Step 1/9")}), True),
        (ProvisioningStatus(at=0.0, why="the engine can't be used"), False),
        (None, False),
    ],
)
def test_waiting_for_nodes_is_no_stall_while_somebody_serves_the_compute(
    monkeypatch: pytest.MonkeyPatch, status: ProvisioningStatus | None, is_waiting: bool
) -> None:
    clock, age_s = 0.0, 0.0

    def said(*_: object) -> ProvisioningStatus | None:
        return status and msgspec.structs.replace(status, at=clock - age_s)

    monkeypatch.setattr(Provisioning, "status", said)
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": "cpus"})
    progress, redis = Progress(), cast("Any", None)
    watch, completion = (
        ComputeWatch(Path(), redis, spec, lambda _: None, lambda: clock),
        Completion(spec, progress, ErrorGroups(), 0.0),
    )
    completion.published(1, 0.0)

    def wait(hours: int) -> bool:
        """Whether the job hasn't ended after that time."""
        nonlocal clock
        for _ in range(hours * 360):
            clock += 10.0
            watch.refresh(progress, 0, clock)
            if watch.is_awaited:
                completion.stood_still(clock)
            completion.refresh(clock, nodes=0, running=0, lost=0)
        return completion.end() is None

    assert wait(8) is is_waiting
    age_s = 40.0
    assert not wait(8), "nobody serves it any more"
    end = completion.end()
    assert end is not None
    assert end.failure is not None
    assert "(the provisioner has been silent for 40 s)" in end.failure.summary or not is_waiting
