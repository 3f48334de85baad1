"""Jobs that an earlier release has left half done are finished by this one; those of a newer one are left alone."""

from __future__ import annotations

import json

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.golden.build import rows
from tests.golden.opened import RELEASES, opened

pytestmark = pytest.mark.integration


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
