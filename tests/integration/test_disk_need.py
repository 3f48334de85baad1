"""A job whose mini-batches have no room on a node's disk says so when it begins, and names the nodes that it leaves."""

from __future__ import annotations

import textwrap

import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

WAITS = textwrap.dedent("""
    import os, time

    def init():
        while not os.path.exists(os.environ["GO"]):
            time.sleep(0.01)

    def run(mini_batch):
        return mini_batch
""")


def test_disk_that_is_too_small_for_copies_is_named_when_the_job_begins() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        folder = cluster.files(2)
        with (folder / "huge.bin").open("wb") as file:
            file.truncate(8 << 40)  # no block of it is written
        job = cluster.submit(
            WAITS, run_max_try=1, error_threshold=-1, environment_variables={"GO": str(cluster.home / "go")},
            inputs={"data": {"path": str(folder), "mode": "download"}}, mini_batch_size=3,
        )  # fmt: skip
        needs = "of disk free: files are copied to the node, a mini-batch has about 8,796.1 GB"
        cluster.until(lambda: needs in overview(cluster, job), "the job says so")
        (cluster.home / "go").touch()
        result = cluster.result(job)
        assert result.state in (JobState.FAILED, JobState.COMPLETED)
        assert any(needs in warning for warning in result.warnings), result.warnings
        left = "All nodes have left the job: they are free for others."
        cluster.until(lambda: left in overview(cluster, job), "nodes leave")


def overview(cluster: Cluster, job: str) -> str:
    logs = cluster.folder(job).logs
    return "".join(path.read_text() for path in sorted(logs.glob("job_progress_overview.*")))
