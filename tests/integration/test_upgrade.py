"""An upgrade is a restart of every service, one after the other, while jobs run: nothing is lost or charged."""

from __future__ import annotations

import pytest

from parallelrun import Client
from parallelrun_core.backup.verifying import Verification
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCRIPT = """
import os, time
def run(mini_batch):
    time.sleep(0.05)  # work, so that services are restarted in the middle of it
    return [os.path.basename(path) for path in mini_batch]
"""
FILES = 800


def test_a_rolling_restart_of_every_service_under_load_loses_nothing() -> None:
    with Cluster(nodes=2, slots=2, api=True) as cluster, Client(cluster.api_url) as client:
        job = cluster.submit(SCRIPT, inputs=cluster.files(FILES), mini_batch_size=2)

        def decided() -> int:
            return sum(1 for _ in read_decisions(cluster.folder(job).path))

        for name in ("master", "concatenator", "node000", "node001", "api"):
            before = decided()
            cluster.until(lambda before=before: decided() > before, "the job goes on", timeout_s=60)  # type: ignore[misc]
            process = cluster.processes[name]
            process.terminate()
            assert process.wait(60) == 0, name
            cluster.start(name)
        cluster.wait_for_apis()
        assert cluster.registry.state(job) is JobState.PROCESSING
        result = cluster.result(job, timeout_s=180)
        assert result.state is JobState.COMPLETED, result.failure
        assert cluster.output(result) == [f"file-{number:07d}.txt" for number in range(FILES)]
        assert {outcome.tries for outcome in read_decisions(cluster.folder(job).path)} == {1}
        assert client.jobs.get(job).state == "completed"
        assert Verification(cluster.root).run().findings == []
