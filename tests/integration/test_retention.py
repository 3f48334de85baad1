"""Jobs are archived, deleted and restored; masters remove what rules and users want removed, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from parallelrun import Client
from parallelrun.cli.app import run as command_line
from parallelrun.errors import ApiError
from parallelrun_core.layout import code_store
from parallelrun_core.retention.marks import Marks
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCRIPT = "def run(mini_batch):\n    return mini_batch\n"
DAY_S = 86_400.0


def test_jobs_are_archived_deleted_restored_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        cluster.environments["master"] = {"PARALLELRUN_KEEP_JOBS_DAYS": "30"}
        cluster.kill("master")
        cluster.start("master")
        job, kept = (cluster.submit(SCRIPT, inputs=cluster.files(4), mini_batch_size=2) for _ in range(2))
        assert {cluster.result(each).state for each in (job, kept)} == {JobState.COMPLETED}
        cluster.until(lambda: not cluster.registry.active_jobs(), "both are retired")

        def listed(*, archived: bool = False) -> set[str]:
            return {each.id for each in client.jobs.list(archived=archived)}

        assert client.jobs.archive(job).archived
        assert listed() == {kept}
        assert listed(archived=True) == {job, kept}
        assert not client.jobs.restore(job).archived
        assert listed() == {job, kept}

        client.jobs.delete(job)
        client.jobs.delete(job)
        assert listed(archived=True) == {kept}
        with pytest.raises(ApiError, match="was deleted"):
            client.jobs.get(job)
        with pytest.raises(ApiError, match="was deleted"):
            client.jobs.resume(job)
        client.jobs.restore(job)
        assert listed() == {job, kept}

        client.jobs.delete(job)
        Marks(cluster.folder(job)).restore()
        Marks(cluster.folder(job)).delete(time.time() - 0.5 * DAY_S)  # so long ago
        planned = client.admin.prune(dry_run=True)
        assert planned.jobs == [job]
        assert cluster.folder(job).has_record
        assert client.admin.prune().jobs == [job]
        cluster.until(lambda: not cluster.folder(job).path.exists(), "a master removes it")
        cluster.until(lambda: client.admin.usage().last_sweep is not None, "and says so")
        usage = client.admin.usage()
        assert usage.rules["jobs_days"] == 30
        assert usage.last_sweep is not None
        assert usage.last_sweep.jobs == [job]
        assert [each.job for each in usage.largest] == [kept]
        assert client.jobs.get(kept).state == "completed"
        assert (code_store(cluster.root)).exists()
        assert command_line(["admin", "usage", "--url", cluster.api_url]) == 0
        assert "folders of jobs" in capsys.readouterr().out


def test_what_is_needed_is_not_deleted_and_what_has_no_parts_is_not_resumed() -> None:
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        job = cluster.submit(SCRIPT, inputs=cluster.files(4), mini_batch_size=2)
        output = Path(cluster.result(job).output)
        cluster.kill("node000")
        reader = cluster.submit(SCRIPT, inputs=output.parent, mini_batch_size=2)
        with pytest.raises(ApiError, match="has not ended"):
            client.jobs.delete(reader)
        cluster.until(lambda: not cluster.registry.is_active(job), "it is retired")
        with pytest.raises(ApiError, match=f"job {reader} refers to it"):
            client.jobs.delete(job)
        Marks(cluster.folder(job)).strip(time.time(), "parts")
        assert "can't be resumed" in client.jobs.get(job).notes[-1]
        with pytest.raises(ApiError, match="part files"):
            client.jobs.retry(job)
        Marks(cluster.folder(job)).notify(time.time(), "it ended 30 days before", time.time() + 7 * DAY_S)
        assert client.jobs.get(job).removed_at is not None
        assert any("will be removed" in note for note in client.jobs.get(job).notes)
