"""A run on this machine: cluster up, job in, progress, cluster down, results in their place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from parallelrun.embedded import datastores, earlier_run
from parallelrun.embedded.cluster import Cluster
from parallelrun.embedded.far_places import check_inputs
from parallelrun.embedded.pipeline_places import PipelinePlaces
from parallelrun.embedded.preload import preload_of
from parallelrun.embedded.run_places import RunPlaces
from parallelrun.errors import (
    ApiError,
    ClusterFailed,
    Conflict,
    ConnectionFailed,
    InvalidInput,
    JobCanceled,
    JobFailed,
    TimedOut,
)
from parallelrun.job_file.reading import check_paths
from parallelrun.models import Job
from parallelrun.progress.display import Display
from parallelrun.progress.summary import headline
from parallelrun.resources.watch import watch
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.intake.reading import Reading
from parallelrun_core.layout import asset_store, outbox_of
from parallelrun_core.limits.definition import limit_catalog, limit_of
from parallelrun_core.problems import Problems
from parallelrun_core.service.state_folder import state_folder
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.pipeline_steps import with_jobs
from parallelrun_core.storage.location import is_url

if TYPE_CHECKING:
    from parallelrun.client import Client
    from parallelrun.embedded.begun_template import BegunTemplate

_CANCEL_S: Final = 30.0
TRACES_S: Final = 5.0
"""How long a collector is waited for, if there are traces: the cluster ends with the job."""
_STEPS_AT_ONCE: Final = 8
"""Of a pipeline, each with a leader of its own; its workers share the same CPUs."""
_POLL_EVERY_S: Final = 0.05


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult:
    """A job that has ended, and where its results are."""

    job: Job
    logs: Path | None = None
    """The folder of its logs."""
    output: Path | None = None
    """The file with its rows, if there are any."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """The outputs that the script itself has written, by their names."""
    output_url: str = ""
    """The object with its rows, if these are in an object store."""
    output_urls: Mapping[str, str] = field(default_factory=dict)
    """The URLs of the outputs that are in object stores."""
    registered: tuple[str, ...] = ()
    """The assets that outputs have become, as jobs name them."""
    working_data: Path | None = None
    """The cluster's data, if kept: for another run that takes over, or on request."""

    def __repr__(self) -> str:
        """Return how the job has ended, what failed in it first, and where everything is."""
        rows = self.output or self.output_url
        places = {"output": rows, "logs": self.logs, "working_data": self.working_data}
        places |= {**self.outputs, **self.output_urls}
        where = ", ".join(f"{name}={str(path)!r}" for name, path in places.items() if path)
        return f"<RunResult {headline(self.job)}{where and '; '}{where}>"


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """The end of a run: its job has completed, failed or was canceled."""

    result: RunResult
    interrupt: KeyboardInterrupt | None = None
    """The interrupt that ended the job, if any did."""
    resume_hint: str = ""
    """The command that runs only the rest; empty if the job has completed, or nothing of it is done."""

    def completed(self) -> RunResult:
        """The result of a job that has completed.

        Raises:
            JobFailed, JobCanceled, KeyboardInterrupt: it has not; notes of the error say what the run has left.
        """
        job = self.result.job
        error: BaseException | None = self.interrupt
        if error is None and job.state != "completed":
            error = JobFailed(job, logs=self.result.logs) if job.state == "failed" else JobCanceled(job)
        if error is None:
            return self.result
        error.add_note(f"logs: {self.result.logs}")
        if self.resume_hint:
            error.add_note(self.resume_hint)
        raise error


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run on this machine."""

    folder: str | Path | None = None
    """For its outputs and logs; by default the job's own, else `NAME-TIME` in the current folder."""
    nodes: int = 1
    processes: int | None = None
    """Workers on each node; by default, the CPUs are divided between the nodes."""
    overwrite: bool = False
    """Replace what an earlier run has left."""
    keep: bool = False
    """Keep the working data even if the job completes."""
    resume_from: str | Path | None = None
    """The folder of an earlier run, whose finished work is taken over."""
    limits: Sequence[Mapping[str, Any] | str | Path] = ()
    """The limits that jobs name in `rate_limits`: documents, or the paths of files with them."""


def run_here(
    reading: Reading,
    options: RunOptions,
    *,
    resume_option: Callable[[Path], str],
    display: Display,
    template: BegunTemplate | None = None,
    on_end: Callable[[RunEnd], None] = lambda _: None,
) -> RunEnd:
    """Run a job on a temporary cluster below the folder that gets its results.

    Args:
        reading: the job, and where its fields were written.
        resume_option: how the user of this function's caller names the folder of an earlier run.
        template: the template of the cluster's services, if one was begun.
        on_end: called when the job has ended and its logs are in their place, before its outputs are.

    Raises:
        InvalidInput: a field is wrong, or the folder can't be used. Nothing has been started.
        InvalidInput, ClusterFailed, ConnectionFailed, TimedOut, ApiError, KeyboardInterrupt: the run broke off. If
            another one can go on, a note of the error says how.
    """
    datastores.use()
    _check(reading)
    with reading.locating_problems():  # the API checks more than that
        run = _LocalRun(reading, options, resume_option=resume_option, display=display, template=template)
        return run.run(on_end)


def _check(reading: Reading) -> None:
    """Check that all that is read, by each step of a pipeline, is there.

    Raises:
        InvalidInput: something is missing; all of it is reported at once.
    """
    problems = Problems()
    for _, each in reading.jobs():
        try:
            with each.locating_problems():
                check_paths(each.job)
                check_inputs(each.job)
        except InvalidInput as error:
            problems.problems += error.problems
    problems.check()


def _own_assets() -> Path | None:
    """The root folder of this user's assets; None for one without a home."""
    try:
        return state_folder()
    except RuntimeError:
        return None


class _LocalRun:
    """A run: its folder is claimed when this is created.

    Raises:
        InvalidInput: the folder can't be used. Nothing has been started.
    """

    def __init__(
        self,
        reading: Reading,
        options: RunOptions,
        *,
        resume_option: Callable[[Path], str],
        display: Display,
        template: BegunTemplate | None,
    ) -> None:
        self._earlier = earlier_run.job_of(Path(options.resume_from)) if options.resume_from else None
        self._places = _places_of(reading, options, self._earlier)
        self._folder = self._places.folder
        self._keep = options.keep
        self._limits = [limit_of(each) for each in options.limits]
        is_job = isinstance(self._places, RunPlaces)
        rest = (
            "the rest" if is_job else "steps that have not completed, or have another code folder, settings or inputs"
        )
        self._resume_hint = f"to run only {rest}, into another folder, add {resume_option(self._folder.folder)}"
        self._display = display
        self._notes = [*map(str, reading.notes)]
        self._interrupt: KeyboardInterrupt | None = None
        self._job_id = ""
        self._cluster = Cluster(
            self._folder.home,
            nodes=options.nodes,
            processes=options.processes or _processes(self._places.spec),
            jobs=1 if is_job else _STEPS_AT_ONCE,
            may_forget=True,  # the folder of its only job is enough to go on
            assets=_own_assets(),
            preload=preload_of(self._places.spec) if options.nodes == 1 else (),
            template=template,
            on_note=self._display.note,
        )

    def run(self, on_end: Callable[[RunEnd], None]) -> RunEnd:
        """Run the job, and hand over its results."""
        keep = True  # unless everything is where it belongs
        try:
            job = self._on_cluster()
            is_kept = self._keep or job.state == "failed" or (job.state == "canceled" and job.progress.done > 0)
            end = self._hand_over(job, on_end, keep=is_kept)
            keep = is_kept
        except (KeyboardInterrupt, ApiError) as error:
            keep = self._note_the_rest(error) or self._keep
            raise
        except ClusterFailed as error:
            keep = self._note_the_rest(error) or any(self._cluster.layout.logs.glob("*.log"))  # they say why
            raise
        except (ConnectionFailed, TimedOut) as error:
            self._note_the_rest(error)
            raise
        finally:
            self._folder.close(keep=keep)
        return end

    def _note_the_rest(self, error: BaseException) -> bool:
        """Return whether another run can go on where this error broke it off; if so, the error's notes say how."""
        root = self._cluster.layout.root
        is_resumable = bool(self._job_id) and earlier_run.has_finished_work(job_folder(root, self._job_id))
        if is_resumable:
            error.add_note(self._resume_hint)
        return is_resumable

    def _on_cluster(self) -> Job:
        """Run the job to its end."""
        from parallelrun.top.page import sign_in_address

        with self._display as display, self._cluster as cluster, cluster.client() as client:
            datastores.give_to(cluster.layout.root)
            for limit in self._limits:
                limit_catalog(cluster.layout.root).define(limit)
            if self._earlier is not None:
                bring = earlier_run.copy_into if isinstance(self._places, RunPlaces) else earlier_run.copy_all_into
                bring(self._earlier, cluster.layout.root)
            job = client.jobs.create(self._places.spec, upload_code=False)
            self._job_id = job.id
            display.note(f"page, while the job runs: {sign_in_address(client, job.id)}")
            try:
                ended = watch(client, job, display, on_disconnect=cluster.check)
            except KeyboardInterrupt as interrupt:
                self._interrupt = interrupt
                try:
                    return self._cancel(client, job, interrupt)
                except KeyboardInterrupt:
                    cluster.kill()
                    raise
            if not wait_for_traces(cluster.layout.root, TRACES_S):
                display.note(f"the collector has not taken the trace of the job within {TRACES_S:g} s; it is lost")
            return ended

    def _cancel(self, client: Client, job: Job, interrupt: KeyboardInterrupt) -> Job:
        self._display.note(f"canceling the job; {str(interrupt) or 'Ctrl-C'} again stops everything at once")
        with suppress(Conflict):  # too late to cancel: it ends by itself
            client.jobs.cancel(job.id)
        return client.jobs.wait(job.id, timeout_s=_CANCEL_S, raise_on_failure=False)

    def _hand_over(self, job: Job, on_end: Callable[[RunEnd], None], *, keep: bool) -> RunEnd:
        """Put outputs and logs in their place. The cluster has stopped, so nobody writes there any more."""
        source: JobFolder = job_folder(self._cluster.layout.root, job.id)
        logs = self._folder.hand_over_logs(source.logs, keep=keep)
        if isinstance(self._places, PipelinePlaces):
            for step in self._places.hand_over_logs(source):
                self._cluster.forget(step.job_id)
        self._cluster.forget(job.id)
        # The server received the spec, not the document, so it doesn't know all notes on the document.
        job = msgspec.structs.replace(job, notes=self._notes or job.notes)
        result = RunResult(job=job, logs=logs, working_data=self._folder.working_data if keep else None)
        has_rest = keep and job.state != "completed" and job.progress.done > 0
        end = RunEnd(result=result, interrupt=self._interrupt, resume_hint=self._resume_hint if has_rest else "")
        on_end(end)
        if job.state != "completed":
            return end
        registered, refused = _registered(self._cluster.layout.root)
        for why in refused:
            self._display.note(why)
        rows, outputs = self._places.hand_over_outputs(source)
        return replace(end, result=replace(_with_outputs(result, rows, outputs), registered=tuple(registered)))


def _registered(root: Path) -> tuple[list[str], list[str]]:
    """The assets that the run's outputs have become, which are this user's from now on; and why others have not."""
    if not asset_store(root).is_dir():
        return [], []
    from parallelrun.embedded.assets import take_over

    return take_over(root)


def _with_outputs(result: RunResult, rows: str, outputs: Mapping[str, str]) -> RunResult:
    """The result with its outputs, by where they are: files here, or objects; without those that nobody has written."""
    local = {name: Path(path) for name, path in outputs.items() if path and not is_url(path)}
    return replace(
        result,
        output=Path(rows) if rows and not is_url(rows) else None,
        output_url=rows if is_url(rows) else "",
        outputs={name: path for name, path in local.items() if path.exists()},
        output_urls={name: path for name, path in outputs.items() if is_url(path)},
    )


def _places_of(reading: Reading, options: RunOptions, earlier: JobFolder | None) -> RunPlaces | PipelinePlaces:
    """Return where the run writes, and the job or pipeline with the nodes and workers of this run."""
    if earlier is not None and earlier.record().is_pipeline is not (reading.pipeline is not None):
        kinds = ("a single job", "a pipeline")
        before, now = (kinds[each] for each in (earlier.record().is_pipeline, reading.pipeline is not None))
        raise InvalidInput.at("--resume-from", f"the earlier run was of {before}, and this one is of {now}")
    if reading.pipeline is not None:
        spec = with_jobs(reading.pipeline, lambda job: {**job, **_changes(job, options)})
        jobs = [job.job for _, job in reading.jobs()]
        return PipelinePlaces(spec, jobs, folder=options.folder, overwrite=options.overwrite, earlier=earlier)
    job = reading.job.model_copy(update=_changes({"instance_count": reading.job.instance_count}, options))
    if earlier is not None:
        job = job.model_copy(update={"resume_from": earlier.job_id})
    return RunPlaces(job, folder=options.folder, overwrite=options.overwrite, earlier=earlier)


def _changes(job: Mapping[str, Any], options: RunOptions) -> dict[str, object]:
    """The nodes and workers of this run, for a job."""
    changes: dict[str, object] = {}
    if job.get("command"):
        return changes  # it has one worker
    if job.get("instance_count") is not None:
        changes["instance_count"] = options.nodes
    if options.processes is not None:
        changes["max_concurrency_per_instance"] = options.processes
    return changes


def _processes(spec: JobSpec | PipelineSpec) -> int | None:
    """The workers on each node; None: as many as there are CPUs."""
    return spec.max_concurrency_per_instance if isinstance(spec, JobSpec) else None


def wait_for_traces(root: Path, most_s: float) -> bool:
    """Wait until nothing is owed to a collector, for so long; returns whether that is so. Ctrl-C ends the wait.

    Args:
        root: the folder that the services share.
    """
    notes, until = outbox_of(root, "traces"), time.monotonic() + most_s
    with suppress(KeyboardInterrupt):
        while notes.is_dir() and any(notes.iterdir()) and time.monotonic() < until:
            time.sleep(_POLL_EVERY_S)  # who sends them gives no sign
    return not (notes.is_dir() and any(notes.iterdir()))
