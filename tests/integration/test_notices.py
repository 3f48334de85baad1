"""Whoever wants to know is told of the end of a job, whichever master dies and whatever Redis forgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.webhook import KEY, Receiver

pytestmark = pytest.mark.integration

SCRIPT = "def run(mini_batch):\n    return mini_batch\n"


def test_the_end_of_a_job_is_told_whatever_dies(tmp_path: Path) -> None:
    tell_although_all_die(tmp_path, within_s=60)


def tell_although_all_die(tmp_path: Path, *, within_s: float, without: str = "") -> None:
    """The leader is killed when the end is recorded, its master, too, Redis forgets everything, and the receiver
    refuses the first time."""
    failpoints = f"finish.after_result=kill:{tmp_path / 'killed'}"
    cluster = Cluster(nodes=1, slots=1, leader_s=1, without=without, failpoints=failpoints)
    secrets = cluster.home / "secrets"
    (secrets / "webhooks" / "127.0.0.1").mkdir(parents=True)
    secrets.chmod(0o700)
    (secrets / "webhooks" / "127.0.0.1" / "pager").write_text(KEY)
    cluster.environments["master"] = {
        "PARALLELRUN_NOTIFY_ALLOW": "127.0.0.1",
        "PARALLELRUN_SECRETS_DIR": str(secrets),
    }
    with Receiver(503, 200) as receiver, cluster:
        job = cluster.submit(SCRIPT, inputs=cluster.files(2), notify={"url": receiver.url, "secret": "pager"})
        cluster.until(lambda: cluster.folder(job).result() is not None, "the end is recorded", 60)
        cluster.kill("master")
        cluster.redis.flushall()
        cluster.start("master")
        cluster.until(lambda: len(receiver.told) >= 2, "the end is told", within_s)

        first, second = receiver.told[:2]
        assert first.body == second.body
        assert second.is_signed()
        assert second.said["type"] == "job.completed"
        assert second.said["data"]["job_id"] == job
        cluster.until(lambda: not any((cluster.root / "notices").iterdir()), "nothing is owed", 30)

        step = {"job": {"inputs": {"data": {"path": str(cluster.files(1))}}}}
        pipeline = cluster.submit_pipeline(SCRIPT, {"only": step}, notify=receiver.url)
        cluster.until(lambda: len(receiver.told) >= 3, "the end of a pipeline is told", within_s)
        assert receiver.told[2].said["data"]["job_id"] == pipeline
        assert "webhook-signature" not in receiver.told[2].headers
