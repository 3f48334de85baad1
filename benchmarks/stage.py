"""A real Redis server with a real job, for measurements without a whole cluster."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from parallelrun.embedded.redis_server import RedisServer, find_binary
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.connection import connect_directly
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry

if TYPE_CHECKING:
    from redis import Redis


class Stage:
    """A server as an embedded cluster starts it: AOF, synced every second. Use it in a `with` statement."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="parallelrun-bench-")
        self.home = Path(self._scratch.name)
        self._server = RedisServer(binary=find_binary(), socket=self.home / "redis.sock", data=self.home / "redis")
        self._server.data.mkdir()

    def __enter__(self) -> Self:
        with (self.home / "redis.log").open("wb") as log:
            self._process = subprocess.Popen(self._server.command(), stdout=log, stderr=log)
        if not self._server.wait(20):
            raise RuntimeError((self.home / "redis.log").read_text())
        self.redis: Redis = self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.redis.close()
        self._process.kill()
        self._process.wait()
        self._scratch.cleanup()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def redis_pid(self) -> int:
        return self._process.pid

    def connect(self) -> Redis:
        """One more connection, as a service has it."""
        return connect_directly(self._server.url)

    def job(self, **spec: Any) -> tuple[JobFolder, JobSpec]:
        """A new job that is `processing`; nobody leads it."""
        parsed = JobSpec.parse({"entry_script": "entry.py", **spec})
        folder = JobFolder(self.home, new_job_id())
        folder.create(JobRecord(job_id=folder.job_id, submitted=1.0, code="-", spec=parsed.model_dump(mode="json")))
        folder.layout.make_folders()
        registry = Registry(self.redis)
        registry.add_job(folder.job_id, submitted=1.0)
        self.redis.hset(JobKeys(folder.job_id).job, "state", "processing")
        return folder, parsed

    def lead(self, folder: JobFolder) -> LeaderQueue:
        """The leader's side of a job's queue, leading."""
        queue = LeaderQueue(self.redis, folder.job_id)
        queue.acquire("leader", ttl_ms=3_600_000, folder_term=0)
        return queue
