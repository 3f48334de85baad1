"""Some cases of the matrix on real clusters, and proof that they could fail. `make damage` plays all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest

from parallelrun_core.folder.decisions import read_outcomes
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.takeover import take_over
from parallelrun_core.ids import new_job_id
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.rq.wake import ask_for_leader
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.damage.cases import DAMAGE, Case, play

pytestmark = pytest.mark.integration

MENDED = [
    Case("decisions", "flip", is_leader_killed=True),
    Case("decisions", "truncate", is_leader_killed=False),
    Case("decisions", "delete", is_leader_killed=True),
    Case("part", "flip", is_leader_killed=False),
    Case("part", "delete", is_leader_killed=True),
    Case("journal", "flip", is_leader_killed=True),
    Case("reopened", "delete", is_leader_killed=False),
]
NAMED = [Case("manifest", "truncate", is_leader_killed=True), Case("reopened", "delete", is_leader_killed=True)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(leader_s=1.0, lease_s=2.0) as cluster:
        yield cluster


@pytest.mark.parametrize("case", MENDED, ids=str)
def test_a_job_completes_exactly_whatever_the_disk_has_lost_of_what_was_decided(cluster: Cluster, case: Case) -> None:
    verdict = play(cluster, case)
    assert (verdict.is_hung, verdict.is_exact) == (False, True), verdict
    assert "JOB_DAMAGED" not in verdict.said
    assert verdict.said or case.kind == "journal"


@pytest.mark.parametrize("case", NAMED, ids=str)
def test_a_job_that_lacks_its_plan_fails_by_name_and_resume_completes_it(cluster: Cluster, case: Case) -> None:
    verdict = play(cluster, case)
    assert (verdict.is_hung, verdict.is_exact) == (False, True), verdict
    assert "JOB_DAMAGED" in verdict.said
    assert case.kind in verdict.said


def test_without_the_watchdog_a_job_that_has_lost_decisions_hangs() -> None:
    with Cluster(leader_s=1.0, lease_s=2.0, without="lead.watchdog") as cluster:
        verdict = play(cluster, Case("decisions", "delete", is_leader_killed=True), is_to_hang=True)
        assert verdict.is_hung


def test_without_the_report_of_lost_rows_neither_the_job_nor_a_resume_completes() -> None:
    with Cluster(leader_s=1.0, lease_s=2.0, without="concatenate.lost_rows") as cluster:
        verdict = play(cluster, Case("part", "flip", is_leader_killed=False), deadline_s=15)
        assert not verdict.is_exact


def test_rows_of_an_earlier_job_that_are_damaged_are_made_again(cluster: Cluster) -> None:
    script = "def run(mini_batch):\n    return [name.name for name in map(__import__('pathlib').Path, mini_batch)]\n"
    inputs = cluster.files(20)
    earlier = cluster.submit(script, inputs=inputs, mini_batch_size=1)
    rows = cluster.output(cluster.result(earlier))
    later = new_job_id()
    spec = JobSpec.parse({
        "entry_script": "entry.py", "inputs": str(inputs), "mini_batch_size": 1, "resume_from": earlier,
    })  # fmt: skip
    code = cluster.folder(earlier).record().code
    record = JobRecord(job_id=later, submitted=time.time(), code=code, spec=spec.model_dump(mode="json"))
    part = max(cluster.folder(earlier).parts.iterdir(), key=lambda path: path.stat().st_size)
    DAMAGE["flip"](part)
    cluster.folder(later).create_with(record, partial(take_over, cluster.folder(earlier)))
    cluster.registry.add_job(later, submitted=record.submitted)
    ask_for_leader(cluster.redis, later)
    result = cluster.result(later)

    assert (result.state, cluster.output(result)) == (JobState.COMPLETED, rows)
    assert result.progress.resumed == len(rows) - 1
    overviews = cluster.folder(later).logs.glob("job_progress_overview.*")
    said = "".join(path.read_text() for path in sorted(overviews))
    assert "the rows of 1 mini-batch were lost" in said
    assert "Concatenation begins" in said.partition("were lost")[2], "it is found before anything is put together"


def test_mini_batches_that_redis_has_lost_are_noticed_and_run_again(cluster: Cluster) -> None:
    """Somebody who can write to Redis, or a bug, has removed what waits there, and what is with a node."""
    gate = cluster.home / "gate-of-the-lost"
    script = (
        "import time\nfrom pathlib import Path\n"
        f"def run(mini_batch):\n    while not Path({str(gate)!r}).exists():\n        time.sleep(0.01)\n"
        "    return mini_batch\n"
    )
    job = cluster.submit(script, inputs=cluster.files(30), mini_batch_size=1)
    keys = JobKeys(job)
    cluster.until(lambda: bool(cluster.redis.hlen(keys.leases)), "some are with a node")
    cluster.redis.delete(keys.ready)
    for mini_batch in (27, 28, 29):
        cluster.redis.hdel(keys.messages, str(mini_batch))
    gate.touch()
    result = cluster.result(job)

    assert result.state is JobState.COMPLETED
    assert len(set(cluster.output(result))) == len(cluster.output(result)) == 30
    assert len({each.mini_batch for each in read_outcomes(cluster.folder(job).path)}) == 30
    assert "neither decided, nor waiting, nor with a node" in " ".join(result.warnings)
    assert cluster.logged("master", "damaged")
