"""A backup that is made while jobs run is whole: a new cluster goes on with it, and each row is there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.backup.copying import back_up, restore
from parallelrun_core.backup.verifying import Verification
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCRIPT = """
import os, time
def run(mini_batch):
    time.sleep(0.02)  # work, so that a backup is made in the middle of it
    return [os.path.basename(path) for path in mini_batch]
"""
FILES = 600


def test_a_backup_of_a_cluster_at_work_is_whole_and_goes_on_elsewhere(tmp_path: Path) -> None:
    target = tmp_path / "backup"
    with Cluster(slots=2) as cluster:
        job = cluster.submit(SCRIPT, inputs=cluster.files(FILES), mini_batch_size=2)
        cluster.until(lambda: len(list(read_decisions(cluster.folder(job).path))) >= 20, "some are done")
        back_up(cluster.root, target)
        cluster.until(lambda: len(list(read_decisions(cluster.folder(job).path))) >= 60, "more are done")
        back_up(cluster.root, target)
        assert Verification(target / "root").run().findings == []
        assert cluster.registry.state(job) is JobState.PROCESSING
        result = cluster.result(job, timeout_s=120)
        assert result.state is JobState.COMPLETED, result.failure
        rows = cluster.output(result)
        assert Verification(cluster.root).run().findings == []
        restored = Cluster(slots=2)
        restore(target, restored.root)
        done = len(list(read_decisions(restored.folder(job).path)))
        assert 40 <= done < FILES / 2
        with restored:
            again = restored.result(job, timeout_s=120)
            assert again.state is JobState.COMPLETED, again.failure
            assert restored.output(again) == rows
            assert len(rows) == FILES
            assert Verification(restored.root).run().findings == []
