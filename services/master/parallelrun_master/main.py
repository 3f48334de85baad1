"""The command `parallelrun-master`: supervises RQ workers, and makes sure that every job has a leader.

Each RQ worker leads one job at a time, in a process that it forks for it. RQ itself would notice an orphaned job
only after minutes; this supervisor checks every second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from parallelrun_core.errors import Conflict, NotFound
from parallelrun_core.folder.job_folder import JobFolder, recorded_jobs
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.leader_lease import longest_ms
from parallelrun_core.service import telemetry
from parallelrun_core.service.health import serve_health
from parallelrun_core.service.process import StopSignal
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect, server_run_id, without_password
from parallelrun_core.store.fitness import wait_for_fit_redis
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq_queues import LEADER_QUEUE, ask_for_leader
from parallelrun_core.store.rq_workers import RqWorkers
from parallelrun_master import leader as _preloaded  # noqa: F401 - so that forked processes start at once
from parallelrun_master.lead import SETTINGS
from parallelrun_master.settings import MasterSettings

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

_SWEEP_S = 1.0


class Master:
    """The supervisor."""

    def __init__(self, settings: MasterSettings) -> None:
        self._settings = settings
        self._log = telemetry.logger()
        self._workers = RqWorkers(settings.redis_url, LEADER_QUEUE, settings.leaders, listen_s=settings.leader_seconds)
        self._run_id = ""
        self._skipped = SkippedJobs(settings.root)
        self.connected = False

    def run(self, stop: StopSignal) -> None:
        """Keep the workers running and every job led until the signal comes; then let the leaders resign."""
        redis = connect(self._settings.redis_url)
        registry = Registry(redis)
        while not stop.came:
            try:
                run_id = server_run_id(redis)
                self._workers.keep_running()
                if registry.claim_recovery():
                    self._run_id = ""
                if run_id != self._run_id:
                    self.register_forgotten(registry)
                    self._run_id = run_id
                self._ask_for_leaders(redis, registry)
                self.connected = True
            except CONNECTION_ERRORS as error:
                self.connected = False
                self._log.warning("redis_away", error=str(error))
            stop.wait(_SWEEP_S)
        self._workers.stop()
        self._log.info("stopped")

    def register_forgotten(self, registry: Registry) -> None:
        """Register jobs with a folder and no result, if this Redis doesn't know them or knows an earlier end."""
        for folder in recorded_jobs(self._settings.root):
            with self._skipping_unreadable(folder.job_id):
                if _is_forgotten(folder, registry):
                    record = folder.record()
                    output = folder.named_output(record.job_spec())
                    with suppress(Conflict):  # the API was faster
                        registry.reopen(folder.job_id, submitted=record.submitted, output=output)
                        self._log.warning("job_adopted", job_id=folder.job_id)

    def _ask_for_leaders(self, redis: Redis, registry: Registry) -> None:
        """Make sure that each job that can be read has a leader."""
        for job_id in registry.active_jobs():
            if registry.has_leader(job_id, longest_ms=longest_ms(self._settings.leader_ms)):
                continue
            with self._skipping_unreadable(job_id):
                JobFolder(self._settings.root, job_id).record().job_spec()
                with suppress(NotFound):  # it ended between the two calls
                    ask_for_leader(redis, job_id, attempt=str(registry.status(job_id).term))

    @contextmanager
    def _skipping_unreadable(self, job_id: str) -> Iterator[None]:
        """Skip a job that can't be read, and go on with the others."""
        try:
            yield
            self._skipped.forget(job_id)
        except UNREADABLE as error:
            self._skipped.report(job_id, error)


def _is_forgotten(folder: JobFolder, registry: Registry) -> bool:
    """Whether Redis knows nothing of a job that is to go on, or not that it was reopened."""
    # Redis first: the leader of a job that ends records the result, and only then takes it off the list.
    state = registry.state(folder.job_id)
    may_be = state is None or (state.is_terminal and not registry.is_active(folder.job_id))
    return may_be and folder.result() is None


def main(argv: list[str] | None = None) -> None:
    """Run one master until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use."""
    settings = MasterSettings.from_command_line(argv)
    telemetry.configure("master", log_format=settings.log_format)
    wait_for_fit_redis(settings)
    os.environ[SETTINGS] = settings.model_dump_json()
    master = Master(settings)
    stop = StopSignal()
    telemetry.logger().info(
        "started", leaders=settings.leaders, redis=without_password(settings.redis_url), root=str(settings.root)
    )
    serve_health(settings.health_port, ready=lambda: master.connected)
    master.run(stop)


if __name__ == "__main__":
    main()
