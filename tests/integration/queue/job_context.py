"""A job with a folder and a real server, whose leader and agents a test plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.connection import connect
from parallelrun_core.wire.states import JobState
from parallelrun_master.leader.leader import Leader
from parallelrun_master.settings import MasterSettings
from tests.integration.queue.job_on_redis import JobOnRedis, decided

if TYPE_CHECKING:
    from redis import Redis

PATIENCE_S = 30.0


class Led:
    """A job with a folder, and a leader to be run."""

    def __init__(
        self, redis: Redis, url: str, root: Path, files: int, state: JobState = JobState.QUEUED, **fields: object
    ) -> None:
        inputs = root / "inputs"
        inputs.mkdir()
        for number in range(files):
            (inputs / f"f{number}").touch()
        self.on_redis = JobOnRedis(redis, state)
        self.on_redis.leader.resign("leader")
        self.folder = JobFolder(root, self.on_redis.job_id)
        spec = JobSpec.parse({
            "entry_script": "a.py", "inputs": str(inputs), "mini_batch_size": 1, "output_action": "summary_only",
            **fields,
        })  # fmt: skip
        self.folder.create(
            JobRecord(job_id=self.on_redis.job_id, submitted=1.0, code="c", spec=spec.model_dump(mode="json"))
        )
        self.on_redis.keys_folder = self.folder.keys
        self.root = root
        self.url = url

    def leader(self, seconds: float = 600) -> Leader:
        """One whose lease is so long."""
        self.leaders_client = connect(self.url)
        return Leader(self.leaders_client, self.on_redis.job_id, MasterSettings(root=self.root, leader_seconds=seconds))

    def run_leader(self) -> None:
        """Lead the job until the leader ends by itself."""
        leader = self.leader()
        thread = threading.Thread(target=leader.run)
        thread.start()
        thread.join(PATIENCE_S)
        has_ended = not thread.is_alive()
        leader.resign()
        thread.join(PATIENCE_S)
        assert has_ended

    def is_led_to_its_end(self) -> bool:
        """Lead the job, unless another does; whether it has ended then."""
        self.leader().run()
        return self.folder.result() is not None

    def work(self, most: int = 3) -> None:
        """Be an agent until all is decided."""
        queue = self.on_redis.agent().queue
        deadline = time.monotonic() + PATIENCE_S
        reports, joined = decided(()), False
        while time.monotonic() < deadline:
            turn = queue.turn("stay" if joined else "join", reports, most)
            joined = True
            reports = decided(turn.deliveries)
            if turn.state is JobState.FINALIZING:
                queue.turn("leave", decided(()), 0)
                return
            time.sleep(0.005)

    def result(self) -> JobResult:
        found = self.folder.result()
        assert found is not None, "the leader has ended without a result"
        return found


def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait for something that has no event; returns whether it came, also if it has gone again since."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.005)
    return False
