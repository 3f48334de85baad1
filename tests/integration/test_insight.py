"""What the code of a job does, seen from outside: where its workers are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from parallelrun import Client
from parallelrun.errors import Conflict, NotFound
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

WAITS = """
import time
from pathlib import Path
GO = Path({go!r})
def wait_for_go():
    while not GO.exists():
        time.sleep(0.05)
def run(mini_batch):
    wait_for_go()
    return mini_batch
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(api=True, lease_s=4) as cluster:
        yield cluster


def test_the_line_in_which_workers_are_is_shown_and_they_go_on(cluster: Cluster) -> None:
    go = cluster.home / "go"
    job_id = cluster.submit(WAITS.format(go=str(go)), inputs=cluster.files(4), mini_batch_size=1)
    with Client(cluster.api_url) as client:

        def both_wait() -> bool:
            return client.jobs.get(job_id).progress.running == 2

        cluster.until(both_wait, "both workers run")
        shown = client.jobs.stacks(job_id)
        assert shown.silent == []
        (node,) = shown.nodes
        assert [worker.process for worker in node.workers] == ["process000", "process001"]
        for worker in node.workers:
            functions = [frame.function for frame in worker.threads[0].frames]
            assert functions[-2:] == ["wait_for_go", "run"], worker
            assert (worker.doing, worker.threads[0].frames[-1].file) == ("waits", "entry.py")
        with pytest.raises(Conflict, match="node 'elsewhere' doesn't work"):
            client.jobs.stacks(job_id, node="elsewhere")
        command = [sys.executable, "-m", "parallelrun", "job", "stacks", job_id, "--worker", "process001"]
        printed = subprocess.run(
            [*command, "--url", cluster.api_url], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        assert "node000/process001 (pid " in printed
        assert "process000" not in printed
        assert "    entry.py:9 run\n" in printed
        go.touch()
        result = cluster.result(job_id)
        assert (result.state, result.progress.retried) == ("completed", 0)
        with pytest.raises(Conflict, match="no node works"):
            client.jobs.stacks(job_id)
        with pytest.raises(NotFound):
            client.jobs.stacks("job_00000000000000000000")
