"""The protocol, step by step: the process that does a step dies at it once, and the job ends as if nothing happened."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_core.errors import Conflict
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.service.failpoints import POINTS
from parallelrun_core.wire.states import JobState
from tests.chaos.oracle import ENTRY_SCRIPT, examine
from tests.cluster import Cluster

pytestmark = pytest.mark.chaos

ROOT = Path(__file__).parents[2]
OF_FEW = (
    "cancel.recorded", "fire.decided", "fire.launched", "quota.reserved", "retention.judged", "retention.marked",
    "retention.noticed", "retention.removed", "retention.set_aside", "shuffle.after_rename", "shuffle.before_rename",
    "step.decided", "step.launched",
)  # fmt: skip
"""Steps of a cancel (tests/security/test_forgotten_by_redis.py), of quotas (tests/integration/api/test_quotas.py), of
schedules (tests/integration/test_schedules.py), of retention (tests/unit/retention/test_sweep.py), of the grouping of
rows by keys (tests/integration/test_shuffle.py), and of pipelines (tests/integration/test_pipelines.py)."""
TAKEOVER = "create.before_rename"
IN_THE_DISK_PATH = [name for name in POINTS if name.startswith("commit.") or name.endswith(".before_sync")]


def run_with(failpoint: str, action: str, home_mark: Path, *, api: bool) -> None:
    with Cluster(
        slots=2, lease_s=0.8, leader_s=0.8, failpoints=f"{failpoint}={action}:{home_mark}", api=api
    ) as cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        settings = {
            "inputs": str(cluster.files(240)),
            "mini_batch_size": 4,
            "environment_variables": {"MARKS": str(marks)},
        }
        job = (
            submit_over_http(cluster, {**settings, "code": str(cluster.code(ENTRY_SCRIPT)), "entry_script": "entry.py"})
            if api
            else cluster.submit(ENTRY_SCRIPT, **settings)  # type: ignore[arg-type]
        )

        def ended() -> bool:
            cluster.restart_dead()
            return cluster.registry.state(job) is JobState.COMPLETED

        cluster.until(ended, "the job completes", timeout_s=60)
        result = cluster.result(job)
        finding = examine(cluster.folder(job), result)
        cluster.until(home_mark.exists, f"something reaches {failpoint}")  # the last one comes after the state
        assert finding.is_clean, finding
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")


def submit_over_http(cluster: Cluster, spec: dict[str, object]) -> str:
    """With one idempotency key and as many requests as needed: what a careful client does."""
    found: list[str] = []

    def submitted() -> bool:
        cluster.restart_dead()
        try:
            answer = httpx.post(f"{cluster.api_url}/v1/jobs", json=spec, headers={"Idempotency-Key": "one"}, timeout=10)
        except httpx.TransportError:
            return False
        if answer.status_code == 202:
            found.append(answer.json()["id"])
        return bool(found)

    cluster.until(submitted, "the job is accepted")
    return found[0]


@pytest.mark.parametrize("point", [name for name in POINTS if name not in OF_FEW])
def test_a_process_that_dies_at_this_step_costs_nothing(point: str, tmp_path: Path) -> None:
    run_with(point, "kill", tmp_path / "reached", api=POINTS[point] == "api")


@pytest.mark.parametrize("point", IN_THE_DISK_PATH)
def test_a_disk_that_fails_at_this_step_costs_nothing(point: str, tmp_path: Path) -> None:
    run_with(point, "raise", tmp_path / "reached", api=False)


def test_an_api_that_dies_while_a_job_takes_over_from_another_leaves_no_half_job(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    with Cluster(slots=2, lease_s=0.8, leader_s=0.8, failpoints=f"{TAKEOVER}=kill:{reached}", api=True) as cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        settings: dict[str, Any] = {
            "inputs": str(cluster.files(240)),
            "mini_batch_size": 4,
            "environment_variables": {"MARKS": str(marks)},
        }
        earlier = cluster.submit(ENTRY_SCRIPT, **settings)
        cluster.until(lambda: len(list(read_decisions(cluster.folder(earlier).path))) >= 5, "some are done")
        with suppress(Conflict):  # all of them are done
            cluster.registry.move(earlier, JobState.CANCELED)
        cluster.result(earlier)
        code = {"code": str(cluster.code(ENTRY_SCRIPT)), "entry_script": "entry.py", "resume_from": earlier}
        with pytest.raises(httpx.TransportError):
            httpx.post(
                f"{cluster.api_url}/v1/jobs", json={**settings, **code}, headers={"Idempotency-Key": "one"}, timeout=30
            )
        assert reached.exists()
        assert [path.name for path in (cluster.root / "jobs").glob("job_*")] == [earlier]
        job = submit_over_http(cluster, {**settings, **code})
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        assert result.progress.resumed >= 5
        finding = examine(cluster.folder(job), result)
        assert finding.is_clean, finding


def test_every_point_in_the_code_is_on_the_list_and_the_other_way_round() -> None:
    source = "".join(path.read_text() for folder in ("shared", "services") for path in (ROOT / folder).rglob("*.py"))
    assert set(re.findall(r"failpoints\.reach\(\"([\w.]+)\"\)", source)) == POINTS.keys()
