"""Jobs that an earlier release has left half done are finished by this one; those of a newer one are left alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from parallelrun import Client
from parallelrun_core.backup.verifying import Verification
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.golden.build import SCRIPT, rows
from tests.golden.opened import RELEASES, opened

pytestmark = pytest.mark.integration

GOLDEN_ROOT = Path(__file__).parents[1] / "golden" / "root1"


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_of_an_earlier_release_is_finished_and_one_of_a_newer_left_alone(release: str) -> None:
    with Cluster(slots=1) as cluster:
        cluster.kill("master")
        folder = opened(release, cluster.root)
        done_before = {each.mini_batch: each.token for each in read_decisions(folder.path)}
        newer = cluster.folder("job_00000golden0release2")
        newer.path.mkdir()
        record = json.loads((folder.path / "job.json").read_text())
        (newer.path / "job.json").write_text(json.dumps({**record, "schema": 2, "job_id": newer.job_id}))
        damaged = cluster.folder("job_00000golden00damaged")
        damaged.path.mkdir()
        (damaged.path / "job.json").write_text("{")
        unknown = cluster.folder("job_00000golden00unknown")
        unknown.path.mkdir()
        theirs = {**record["spec"], "output_action": "of_the_next_release"}
        (unknown.path / "job.json").write_text(json.dumps({**record, "job_id": unknown.job_id, "spec": theirs}))
        cluster.registry.add_job(unknown.job_id, submitted=1.0)  # as an API of the next release does
        cluster.registry.move(unknown.job_id, JobState.PROCESSING)
        cluster.redis.rpush(JobKeys(unknown.job_id).ready, 0)
        cluster.until(lambda: cluster.logged("node000", "job_unreadable") == 1, "the agent leaves it alone")
        cluster.start("master")  # it adopts what Redis doesn't know, as after an upgrade
        result = cluster.result(folder.job_id)
        assert result.state is JobState.COMPLETED, result.failure
        assert "\n".join(cluster.output(result)).encode() + b"\n" == b"".join(map(rows, (0, 2, 3, 4, 5)))
        decisions = {each.mini_batch: each.token for each in read_decisions(folder.path)}
        assert decisions.keys() == set(range(6))
        assert done_before.items() <= decisions.items()
        assert cluster.logged("master", "job_too_new") == 1
        assert cluster.logged("master", "job_unreadable") == 2  # each once
        assert cluster.logged("node000", "job_unreadable") == 1
        for left_alone in (newer, damaged, unknown):
            assert sorted(path.name for path in left_alone.path.iterdir()) == ["job.json"]
        assert [cluster.processes[name].poll() for name in ("master", "node000")] == [None, None]


def test_a_root_folder_of_the_previous_release_opens_with_all_that_is_in_it() -> None:
    """Upgrading is starting the services of this release on the same folder, with an empty Redis or the old one."""
    cluster = Cluster(slots=2, api=True)
    shutil.copytree(GOLDEN_ROOT, cluster.root, dirs_exist_ok=True)
    assert Verification(cluster.root).run().findings == []
    with cluster, Client(cluster.api_url) as client:
        jobs = {job.name: job for job in client.jobs.list()}
        assert {job.state for job in jobs.values()} == {"completed"}
        assert jobs.keys() == {"golden", "golden-pipeline"}
        assert client.jobs.get(jobs["golden"].id).progress.rows == 4
        assert [step.state for step in client.jobs.get(jobs["golden-pipeline"].id).steps] == ["completed"]
        assert [each.id for each in client.jobs.mini_batches(jobs["golden"].id)] == [0, 1]
        assert [asset.name for asset in client.data.list()] == ["files"]
        assert [schedule.name for schedule in client.schedules.list()] == ["nightly"]
        assert [datastore.name for datastore in client.datastores.list()] == ["images"]
        assert [compute.name for compute in client.computes.list()] == ["pool"]
        assert client.admin.usage().jobs == 3
        assert client.admin.prune(dry_run=True).jobs == []
        new = cluster.submit(SCRIPT, inputs=cluster.files(4), mini_batch_size=2)
        assert cluster.result(new).state is JobState.COMPLETED
    assert Verification(cluster.root).run().findings == []
