"""Joining a job: reads its folder, and puts together all that a node has for it.

What has been opened is closed again where the node can't join after all.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.jobs.job_driver import JobDriver
from parallelrun_agent.jobs.node_job import JobParts, NodeJob
from parallelrun_agent.jobs.session import AgentSession
from parallelrun_agent.node.monitor import ResourceMonitor
from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.policy.outcomes import OutcomeBuilder
from parallelrun_agent.policy.uploading_machine import UploadingJobMachine
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.stacks.answering import StackAnswers
from parallelrun_agent.staging.job_stage import JobStage
from parallelrun_agent.users.places import share_job, share_loops
from parallelrun_agent.workers.error_files import ErrorFiles
from parallelrun_agent.workers.job_code import JobCode
from parallelrun_agent.workers.job_tracking import JobTracking
from parallelrun_agent.workers.leader_reports import LeaderReports
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_core.computes.images import image_of
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.storage_report import RequestReport
from parallelrun_core.layout import Logs
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.storage.location import is_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from parallelrun_agent.users.worker_user import WorkerUser
    from parallelrun_core.store.connection import Redis


class OtherCompute(Exception):
    """The job runs on another compute than the one that this node belongs to, or on nodes of another image."""


class LeftToAnother(Exception):
    """Another node was faster, and one is enough."""


def join_job(
    redis: Redis,
    folder: JobFolder,
    settings: AgentSettings,
    node: NodeContext,
    *,
    may_join: Callable[[], bool] | None = None,
) -> NodeJob:
    """Return a job of this node, with its first session open.

    Args:
        may_join: asked once the node knows that it can work for the job; None: it may.

    Raises:
        OtherCompute: it isn't for this node.
        LeftToAnother: it may not.
        NotFound, NewerSchema, CorruptLog: the job folder is not there, or can't be read by this release.
        OSError: it can't be read for now, or the node can't do what the job needs.
    """
    record = folder.record()
    if not _is_for(record, settings):
        raise OtherCompute
    if may_join is not None and not may_join():
        raise LeftToAnother
    spec = record.job_spec()
    user = settings.worker_user(record.outermost)
    share_job(folder, settings.node, user)
    share_loops(folder, spec, record.outermost, user)
    with ExitStack() as opened:
        parts = _Joining(redis, folder, record, spec, settings, node, user).parts(opened)
        job = NodeJob(redis, record, spec, settings, parts)
        opened.pop_all()
    return job


def _is_for(record: JobRecord, settings: AgentSettings) -> bool:
    """Return whether a node of this compute, and of this image, is to work for the job."""
    return (str(record.spec.get("compute") or ""), image_of(record.spec)) == (settings.compute, settings.image)


@dataclass(frozen=True)
class _Joining:
    """A job, and the node that joins it."""

    redis: Redis
    folder: JobFolder
    record: JobRecord
    spec: JobSpec
    settings: AgentSettings
    node: NodeContext
    user: WorkerUser

    def parts(self, opened: ExitStack) -> JobParts:
        """Open all that the node has for the job; `opened` closes it."""
        folder, settings, node, user = self.folder, self.settings, self.node, self.user

        def on_python() -> None:  # is called once all of this is there: by us below, and by the node's loop later
            if python.failure is not None:
                reports.never_started(plans.mask.failure(python.failure))

        python = self._python(on_python)
        opened.callback(python.close)
        python.begin()
        code = JobCode(folder.code(self.record), node.loop.wake)
        opened.callback(code.close)
        tracking = JobTracking(folder, self.spec.name, settings, user, node.loop.wake)
        read_here = [each.path for _, each in self.spec.input_paths() if not is_url(each.path)]
        storage = RequestReport(folder.logs, settings.node, read_here)
        stage = JobStage(folder, self.spec, user, node)
        opened.callback(stage.close)
        plans = PlanMaker(
            folder, self.record, self.spec, settings, node.gpus, secrets=node.secrets,
            python=python, paths=stage.paths, tracking=lambda: tracking.variables,
            open_permits=node.permits.open if node.permits else None,
        )  # fmt: skip
        errors = ErrorFiles(folder.logs, settings.node, plans.mask)
        reports = LeaderReports(self.redis, folder.job_id, settings.node, errors)
        on_python()
        driver = self._driver(plans, stage, errors, reports)
        opened.callback(driver.close)
        stacks = StackAnswers(
            Logs(folder.logs),
            settings.node,
            code=str(folder.code(self.record)),
            sanitize=plans.mask.printable,
            user=user,
        )
        monitor = ResourceMonitor(
            Logs(folder.logs).perf(settings.node),
            self.spec.resource_monitor_interval,
            driver.worker_pids,
            user=user,
            storage=storage,
            gpus=node.gpus.devices,
        )
        return JobParts(folder, python, code, tracking, stage, plans, reports, driver, monitor, stacks)

    def _python(self, changed: Callable[[], None]) -> JobPython:
        record, settings, node = self.record, self.settings, self.node
        return JobPython(
            self.spec.environment,
            owner=record.owner,
            package_hosts=record.places.package_hosts if record.places else ("*",),
            cache=settings.cache_folder,
            max_environments=settings.environments_kept,
            log_file=Logs(self.folder.logs).of_node(settings.node) / "environment.txt",
            loop=node.loop,
            orphans=node.orphans,
            changed=changed,
            user=self.user,
            uids=settings.uids,
            may_build_packages=settings.may_build_packages,
            image=node.python,
        )

    def _driver(self, plans: PlanMaker, stage: JobStage, errors: ErrorFiles, reports: LeaderReports) -> JobDriver:
        spec, settings, generation = self.spec, self.settings, self.folder.generation()
        machine_of = UploadingJobMachine if plans.outputs.urls else JobMachine
        machine = machine_of(
            spec,
            OutcomeBuilder(settings.node, generation=generation, retries=MiniBatchRetryPolicy.of(spec)),
            limit=self.node.gpus.workers(spec.max_concurrency_per_instance, settings.slots, spec.gpus_of_worker),
            lease_s=settings.lease_seconds,
            shutdown_s=settings.shutdown_seconds,
            stages=stage.has_data,
        )

        def open_session(events: AbstractContextManager[JobMachine], earlier: AgentSession | None) -> AgentSession:
            return AgentSession(
                self.redis, self.folder, settings, self.node,
                plans=plans, reports=reports, generation=generation, events=events, earlier=earlier,
                open_staging=stage.open if stage.has_data else None,
            )  # fmt: skip

        return JobDriver(machine, self.folder, errors, reports, open_session)
