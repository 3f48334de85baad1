"""The life of one `parallelrun run`: cluster up, job in, progress, cluster down, results in their place."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from parallelrun.cli.exit_codes import ExitCode, of_state
from parallelrun.cli.interrupts import Terminated
from parallelrun.cli.output import say
from parallelrun.cli.verdict import verdict
from parallelrun.cli.watch import watch
from parallelrun.client import Client
from parallelrun.embedded import earlier_run
from parallelrun.embedded.cluster import Cluster
from parallelrun.embedded.run_folder import RunFolder
from parallelrun.errors import ApiError, ClusterFailed, Conflict, InvalidInput
from parallelrun.models import Job
from parallelrun.progress.display import Display, display_on
from parallelrun_core.jobfolder import JobFolder, job_folder
from parallelrun_core.spec import JobSpec

_CANCEL_S: Final = 30.0
_OF_THE_CODE: Final = re.compile(r'^ *File "(?![/<])')
"""Begins a line of a traceback about a file below the code."""


class LocalRun:
    """Runs one job on an embedded cluster below the folder that gets its results.

    Raises:
        InvalidInput: the folder can't be used. Nothing has been started then.
    """

    def __init__(
        self,
        spec: JobSpec,
        *,
        folder: Path | None,
        nodes: int,
        processes: int | None,
        keep: bool,
        overwrite: bool,
        resume_from: Path | None = None,
    ) -> None:
        folder = (folder or Path(spec.output or _default_folder(spec.name))).absolute()
        _check_apart(folder, spec)
        self._earlier = None if resume_from is None else earlier_run.job_of(resume_from)
        if self._earlier is not None:
            if self._earlier.path.is_relative_to(folder):
                raise InvalidInput.at("--output", f"{folder} is that of the earlier run", "name another folder")
            spec = spec.model_copy(update={"resume_from": self._earlier.job_id})
        self._folder = RunFolder(
            folder,
            outputs=[path.name for path in _own_outputs(JobFolder(Path(), ""), _here(spec))],
            overwrite=overwrite,
        )
        self._spec = _for_this_machine(spec, nodes, processes)
        self._keep = keep
        self._display = display_on(sys.stderr, title=spec.name)
        self._cluster = Cluster(
            self._folder.home,
            nodes=nodes,
            processes=processes or spec.max_concurrency_per_instance,
            jobs=1,
            may_forget=True,  # its only job has its truth in its folder
            on_note=self._display.note,
        )

    def run(self) -> ExitCode:
        """Do all of it; returns the exit code of the command."""
        keep = True  # unless everything is where it belongs
        try:
            job, interrupt = self._on_cluster()
            wanted = self._keep or job.state == "failed"
            self._hand_over(job, keep=wanted)
            keep = wanted
        except (KeyboardInterrupt, ApiError):
            keep = self._keep  # there is no job whose data anybody could want
            raise
        except ClusterFailed:
            keep = any(self._cluster.layout.logs.glob("*.log"))  # they say why
            raise
        finally:
            self._folder.close(keep=keep)
        if interrupt is not None:
            return ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
        return of_state(job.state)

    def _on_cluster(self) -> tuple[Job, KeyboardInterrupt | None]:
        """Run the job to its end; returns it, and the interrupt that made it end."""
        with self._display as display, self._cluster as cluster, cluster.client() as client:
            if self._earlier is not None:
                earlier_run.bring(self._earlier, cluster.layout.root)
            job = client.jobs.create(self._spec, upload_code=False)
            try:
                return watch(client, job.id, display, on_disconnect=cluster.check), None
            except KeyboardInterrupt as interrupt:
                try:
                    return self._cancel(client, job, display), interrupt
                except KeyboardInterrupt:
                    cluster.kill()
                    raise

    def _cancel(self, client: Client, job: Job, display: Display) -> Job:
        display.note("canceling the job; Ctrl-C again ends everything at once")
        with suppress(Conflict):  # too late: its end can be waited for all the same
            client.jobs.cancel(job.id)
        return client.jobs.wait(job.id, timeout_s=_CANCEL_S, raise_on_failure=False)

    def _hand_over(self, job: Job, *, keep: bool) -> None:
        """Put output and logs in their place, and tell. The cluster has stopped: nobody writes there any more."""
        source: JobFolder = job_folder(self._cluster.layout.root, job.id)
        logs = self._folder.hand_over_logs(source.logs, keep=keep)
        self._cluster.forget(job.id)
        for line in verdict(job, log_hint=lambda log: str(self._folder.logs / log)):
            # A terminal or an editor opens what is named in full.
            say(_OF_THE_CODE.sub(lambda found: f"{found[0]}{self._spec.code}/", line))
        if keep:
            say(f"working data: {self._folder.working_data}")
        if keep and job.state != "completed" and job.progress.done:
            say(f"to run only what is not done, into another folder: --resume-from {self._folder.folder}")
        if job.state == "completed":
            self._hand_over_outputs(source)
        if logs:
            print(f"logs: {logs}")

    def _hand_over_outputs(self, source: JobFolder) -> None:
        """Put what the job has made in its place; what has a path of its own is there already."""
        spec = self._spec
        # Everything in it: scripts also write files that no output is named for (`EntryScript().output_dir`).
        found = sorted(path for path in source.outputs.iterdir() if not path.name.startswith("."))
        moved = {path: self._folder.hand_over_output(path) for path in found}

        def place(path: Path) -> Path:
            return next((new / path.relative_to(old) for old, new in moved.items() if path.is_relative_to(old)), path)

        if spec.writes_rows:
            output = source.output_file(spec)
            self._folder.correct_log("job_result.txt", output, place(output))
            print(f"output: {place(output)}")
        for name, path in source.output_paths(spec).items():
            if name != spec.append_row_to:
                print(f"output {name}: {place(Path(path))}")


def _own_outputs(folder: JobFolder, spec: JobSpec) -> list[Path]:
    """The outputs that are in the job's own folder: at its top, by name."""
    paths = [Path(path) for path in folder.output_paths(spec).values()]
    if spec.writes_rows and not spec.append_row_to:
        paths.append(folder.output_file(spec))
    return [path for path in paths if path.parent == folder.outputs]


def _here(spec: JobSpec) -> JobSpec:
    """The job with its outputs in its own folder, from where they are handed over."""
    return spec.model_copy(update={"output": ""})


def _check_apart(folder: Path, spec: JobSpec) -> None:
    """See to it that the job doesn't read what it writes. Raises InvalidInput."""
    for path in spec.data_paths():
        if folder.resolve().is_relative_to(Path(path).resolve()):
            raise InvalidInput.at("--output", f"{folder} is part of the job's own input {path}", "name another folder")


def _for_this_machine(spec: JobSpec, nodes: int, processes: int | None) -> JobSpec:
    """The job as it runs here: its outputs stay in its own folder first, and the nodes are those of the command."""
    changes: dict[str, object] = {}
    if spec.instance_count is not None:
        changes["instance_count"] = nodes
    if processes is not None:
        changes["max_concurrency_per_instance"] = processes
    return _here(spec).model_copy(update=changes)


def _default_folder(name: str) -> str:
    return f"{name.replace(' ', '_')}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
