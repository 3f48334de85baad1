"""The command `parallelrun-master`: supervises RQ workers, and makes sure that every job has a leader.

Each RQ worker leads one job at a time, in a process that it forks, which goes on with the jobs that wait. RQ itself
would notice an orphaned job only after minutes; this supervisor checks every second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.errors import Conflict, CorruptLog, Fenced, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.hosting.health import serve_health
from parallelrun_core.hosting.storage_totals import StorageTotals
from parallelrun_core.intake.reopening import is_forgotten, queue_again
from parallelrun_core.layout import job_ids, schedules_of
from parallelrun_core.service import telemetry
from parallelrun_core.service.process import StopSignal, hide_memory
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.store.connection import connect, without_password
from parallelrun_core.store.fitness import wait_for_fit_redis
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq.entries import LEAD
from parallelrun_core.store.rq.wake import ask_for_leader, waiting_for_leader
from parallelrun_core.store.rq.workers import RqWorkers
from parallelrun_core.wire.leasing import longest_ms
from parallelrun_master.destinations import deliveries
from parallelrun_master.leader.leftovers import wait_for_removals
from parallelrun_master.leader_process import lead, warm_up
from parallelrun_master.settings import MasterSettings
from parallelrun_master.sweeping import Sweeping
from parallelrun_master.unreadable_job import fail_unreadable_job

if TYPE_CHECKING:
    from pathlib import Path

    from parallelrun_core.service.secret_source import SecretSource
    from parallelrun_master.outbox.watch import Watch
    from parallelrun_master.schedules.firing import Firing

_DAMAGED_S: Final = 10.0
_MISSING_S: Final = 75.0
"""How long what was submitted must be unreadable, or not there: NFS believes for a minute that a file is missing."""


class Master:
    """Makes sure that every job has a leader."""

    def __init__(self, settings: MasterSettings) -> None:
        self._settings = settings
        self._log = telemetry.logger()
        self._redis = connect(settings.redis_login)
        self._registry = Registry(self._redis)
        self._run_id = ""
        self._unattended: set[str] | None = None
        """Jobs that had no leader at the last check, and did not wait for one; None: this is the first."""
        self._skipped = SkippedJobs(settings.root)
        self._damaged_since: dict[str, float] = {}
        self._firing: Firing | None = None
        self._watches: dict[Path, Watch] = {}
        self._sweeping = Sweeping(settings)
        self._deliveries = deliveries(settings)

    def check(self) -> None:
        """Register the jobs that Redis has forgotten, ask for a leader for every job without one, and make those that
        schedules want now.

        Raises one of `CONNECTION_ERRORS` while Redis is away.
        """
        is_claimed, run_id, active = self._registry.claim_recovery()
        if is_claimed:
            self._run_id = ""  # only once is it claimed, also if what follows is interrupted
        if run_id != self._run_id:
            self._register_forgotten()
            self._run_id = run_id
            active = self._registry.active_jobs()
        self._ask_for_leaders(active)
        self._fire()
        self._tell()
        self._sweeping.check()

    def _fire(self) -> None:
        """Make the jobs of schedules that are due."""
        if self._firing is None and schedules_of(self._settings.root).is_dir():
            from parallelrun_master.schedules.firing import Firing  # most clusters have no schedules

            self._firing = Firing(self._settings.root, self._redis)
        if self._firing is not None:
            self._firing.check()

    def _tell(self) -> None:
        """Deliver the ends of jobs to whoever wants to know: webhooks, traces."""
        for notes, module in self._deliveries.items():
            if notes not in self._watches and notes.is_dir():  # most clusters have nobody to tell
                from parallelrun_master.outbox.watch import Watch

                order = partial(import_module(module).order_of, self._settings)
                self._watches[notes] = Watch(notes, self._registry, module, order)
            if notes in self._watches:
                self._watches[notes].check()

    def _register_forgotten(self) -> None:
        """Register jobs with a folder and no result, if this Redis doesn't know them or knows an earlier end."""
        for job_id in job_ids(self._settings.root):
            with self._skipping_unreadable(job_id):
                folder = JobFolder(self._settings.root, job_id)
                if folder.has_record and is_forgotten(self._registry, folder):
                    with suppress(Conflict):  # the API was faster
                        queue_again(self._registry, folder)
                        self._log.warning("job_adopted", job_id=job_id)

    def _ask_for_leaders(self, active: list[str]) -> None:
        """Make sure that each of these jobs that can be read has a leader."""
        longest = longest_ms(self._settings.leader_ms)
        unled = self._registry.without_leader(active, longest_ms=longest)
        waiting = waiting_for_leader(self._redis) if unled else ()
        unattended = [job_id for job_id in unled if job_id not in waiting]  # hundreds may wait, and all places be taken
        before, self._unattended = self._unattended, set(unattended)
        for job_id in unattended:
            with self._skipping_unreadable(job_id), self._ending_damaged(job_id):
                record = JobFolder(self._settings.root, job_id).record()
                _ = record.pipeline_spec() if record.is_pipeline else record.job_spec()  # it can be led
                with suppress(NotFound):  # it ended between the two calls
                    term = self._registry.status(job_id).term
                    if term or before is None or job_id in before:  # else its first leader may just be starting
                        ask_for_leader(self._redis, job_id, attempt=str(term))

    @contextmanager
    def _ending_damaged(self, job_id: str) -> Iterator[None]:
        """Fail a job that can't be led, because what was submitted is damaged, once that has lasted."""
        folder = JobFolder(self._settings.root, job_id)
        try:
            yield
        except (NotFound, CorruptLog):
            # Without its folder, this may not be the job's volume; and a later release may be able to read its spec.
            is_damaged = folder.path.is_dir() and not _can_be_read(folder)
            since = self._damaged_since.setdefault(job_id, time.monotonic())
            lasts_s = _DAMAGED_S if folder.has_record else _MISSING_S
            if is_damaged and time.monotonic() - since > lasts_s:
                why = f"{folder.layout.record} is missing or can't be read"
                self._log.error("job_damaged", job_id=job_id, reason=why)
                with suppress(Fenced, NotFound):
                    fail_unreadable_job(self._redis, folder, why, term=self._registry.status(job_id).term)
            raise
        self._damaged_since.pop(job_id, None)

    @contextmanager
    def _skipping_unreadable(self, job_id: str) -> Iterator[None]:
        """Skip a job that can't be read, and go on with the others."""
        try:
            yield
            self._skipped.forget(job_id)
        except UNREADABLE as error:
            self._skipped.report(job_id, error)


def _can_be_read(folder: JobFolder) -> bool:
    try:
        folder.record()
    except (NotFound, CorruptLog):
        return False
    return True


def _say_what_becomes_of_traces(settings: MasterSettings) -> None:
    """Log a line for an operator who wants traces and would get none, or others than meant."""
    tracing = settings.tracing()
    if tracing is not None and (why := tracing.problem or tracing.ignored):
        telemetry.logger().warning("no_traces" if tracing.problem else "traces_otherwise", reason=why)


def main(argv: list[str] | None = None) -> None:
    """Run one master until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use."""
    hide_memory()
    settings = MasterSettings.from_command_line(argv)
    telemetry.configure("master", log_format=settings.log_format)
    with closing(ProcessSecrets(settings.secrets_dir)) as secrets:  # leaders are forked from this process
        datastore_registry.configure(settings.root, secrets)
        _run(settings, secrets)
    telemetry.logger().info("stopped")


def _run(settings: MasterSettings, secrets: SecretSource) -> None:
    warm_up()
    wait_for_fit_redis(settings)
    stop, storage = StopSignal(), StorageTotals()

    def end_process() -> None:
        wait_for_removals()
        secrets.close()

    workers = RqWorkers(
        settings.redis_login,
        LEAD,
        storage.handed_over(partial(lead, settings)),
        settings.leaders,
        listen_s=settings.leader_seconds,
        at_end=end_process,
    )
    telemetry.logger().info(
        "started", leaders=settings.leaders, redis=without_password(settings.redis_url), root=str(settings.root)
    )
    _say_what_becomes_of_traces(settings)
    serve_health(settings.health_port, ready=lambda: workers.connected, storage=storage.reading)
    workers.supervise(stop, Master(settings).check)


if __name__ == "__main__":
    main()
