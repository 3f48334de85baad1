"""One run on this machine: cluster up, job in, progress, cluster down, results in their place."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun.embedded import earlier_run
from parallelrun.embedded.cluster import Cluster
from parallelrun.embedded.run_folder import RunFolder
from parallelrun.errors import ApiError, ClusterFailed, Conflict, ConnectionFailed, InvalidInput, TimedOut
from parallelrun.progress.display import Display
from parallelrun.progress.watch import watch
from parallelrun_core.folder.files import sync_folder
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.globs import Pattern
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.storage.supported import supported_path

if TYPE_CHECKING:
    from parallelrun.client import Client
    from parallelrun.models import Job

_CANCEL_S: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A job that has ended, and where its results are."""

    job: Job
    logs: Path | None = None
    """The folder of its logs."""
    output: Path | None = None
    """The file with its rows, if there are any."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """What the script itself has written, by the names of the outputs."""
    working_data: Path | None = None
    """The cluster's data, if kept: for another run that takes over, or on request."""


class LocalRun:
    """Runs one job on an embedded cluster below the folder that gets its results.

    Args:
        on_end: called when the job has ended and its logs are in their place, before its outputs are.

    Raises:
        InvalidInput: the folder can't be used. Nothing has been started.
    """

    def __init__(
        self,
        spec: JobSpec,
        *,
        folder: str | Path | None,
        nodes: int,
        processes: int | None,
        keep: bool,
        overwrite: bool,
        display: Display,
        on_end: Callable[[RunResult], None] = lambda _: None,
        resume_from: Path | None = None,
    ) -> None:
        folder = (_local(folder) or Path(spec.output or _default_folder(spec.name))).absolute()
        _check_apart(folder, spec)
        self._earlier = None if resume_from is None else earlier_run.job_of(resume_from)
        if self._earlier is not None:
            if self._earlier.path.is_relative_to(folder):
                raise InvalidInput.at("--output", f"{folder} is the folder of the earlier run", "name another folder")
            spec = spec.model_copy(update={"resume_from": self._earlier.job_id})
        if not overwrite:
            earlier_run.check_nothing_is_lost(folder)
        self._replaced = _replaced(spec, overwrite=overwrite)
        self._folder = RunFolder(
            folder,
            outputs=[path.name for path in _own_outputs(JobFolder(Path(), ""), _here(spec))],
            overwrite=overwrite,
        )
        self._spec = _for_this_machine(spec, nodes, processes)
        if self._replaced is not None:
            self._spec = _with_rows_in(self._spec, _beside(self._replaced))
        self._keep = keep
        self._display = display
        self._on_end = on_end
        self.interrupt: KeyboardInterrupt | None = None
        """What interrupted the job, if anything did."""
        self.resumable: Path | None = None
        """The folder that another run can take over from, if this one broke off with some of the job done."""
        self._job_id = ""
        self._cluster = Cluster(
            self._folder.home,
            nodes=nodes,
            processes=processes or spec.max_concurrency_per_instance,
            jobs=1,
            may_forget=True,  # the folder of its only job is enough to go on
            on_note=self._display.note,
        )

    def run(self) -> RunResult:
        """Run the job, and hand over its results."""
        keep = True  # unless everything is where it belongs
        try:
            job = self._on_cluster()
            wanted = self._keep or job.state == "failed" or (job.state == "canceled" and job.progress.done > 0)
            done = self._hand_over(job, keep=wanted)
            keep = wanted
        except (KeyboardInterrupt, ApiError):
            keep = self._is_resumable() or self._keep
            raise
        except ClusterFailed:
            keep = self._is_resumable() or any(self._cluster.layout.logs.glob("*.log"))  # they say why
            raise
        except (ConnectionFailed, TimedOut):
            self._is_resumable()
            raise
        finally:
            self._folder.close(keep=keep)
        return done

    def _is_resumable(self) -> bool:
        """Whether another run can go on where this one broke off."""
        if self._job_id and earlier_run.has_finished_work(job_folder(self._cluster.layout.root, self._job_id)):
            self.resumable = self._folder.folder
        return self.resumable is not None

    def _on_cluster(self) -> Job:
        """Run the job to its end."""
        with self._display as display, self._cluster as cluster, cluster.client() as client:
            if self._earlier is not None:
                earlier_run.copy_into(self._earlier, cluster.layout.root)
            job = client.jobs.create(self._spec, upload_code=False)
            self._job_id = job.id
            try:
                return watch(client, job.id, display, on_disconnect=cluster.check)
            except KeyboardInterrupt as interrupt:
                self.interrupt = interrupt
                try:
                    return self._cancel(client, job, display)
                except KeyboardInterrupt:
                    cluster.kill()
                    raise

    def _cancel(self, client: Client, job: Job, display: Display) -> Job:
        display.note(f"canceling the job; {str(self.interrupt) or 'Ctrl-C'} again stops everything at once")
        with suppress(Conflict):  # too late to cancel: it ends by itself
            client.jobs.cancel(job.id)
        return client.jobs.wait(job.id, timeout_s=_CANCEL_S, raise_on_failure=False)

    def _hand_over(self, job: Job, *, keep: bool) -> RunResult:
        """Put outputs and logs in their place. The cluster has stopped, so nobody writes there any more."""
        source: JobFolder = job_folder(self._cluster.layout.root, job.id)
        logs = self._folder.hand_over_logs(source.logs, keep=keep)
        self._cluster.forget(job.id)
        done = RunResult(job=job, logs=logs, working_data=self._folder.working_data if keep else None)
        self._on_end(done)
        return self._hand_over_outputs(source, done) if job.state == "completed" else done

    def _hand_over_outputs(self, source: JobFolder, done: RunResult) -> RunResult:
        """Put the outputs of the job in their place; those with a path of their own are there already."""
        spec = self._spec
        # Everything in it: scripts also write files that are no named output (`EntryScript().output_dir`). But not what
        # a concatenator was writing when it died, which the cluster may not have removed before it stopped.
        target = str(source.output_file(spec))
        unfinished = storage_of(target).unfinished(target, source.job_id)
        found = sorted(path for path in source.outputs.iterdir() if str(path) not in unfinished)
        moved = {path: self._folder.hand_over_output(path) for path in found}
        if self._replaced is not None:
            moved[source.output_file(spec)] = self._replaced
            source.output_file(spec).replace(self._replaced)
            sync_folder(self._replaced.parent)
        self._folder.mark_handed_over()

        def place(path: Path) -> Path:
            return next((new / path.relative_to(old) for old, new in moved.items() if path.is_relative_to(old)), path)

        named = source.output_paths(spec).items()
        outputs = {name: place(Path(path)) for name, path in named if name != spec.append_row_to}
        if not spec.writes_rows:
            return replace(done, outputs=outputs)
        output = source.output_file(spec)
        self._folder.correct_log("job_result.txt", output, place(output))
        return replace(done, output=place(output), outputs=outputs)


def _local(folder: str | Path | None) -> Path | None:
    """The folder that was named for the results, in any form of a location.

    Raises:
        InvalidInput: it is on a kind of storage that isn't supported.
    """
    try:
        return Path(supported_path(str(folder), is_written=True)) if folder else None
    except ValueError as error:
        raise InvalidInput.at("--output", str(error)) from error


def _own_outputs(folder: JobFolder, spec: JobSpec) -> list[Path]:
    """The outputs directly in the job's own folder."""
    paths = [Path(path) for path in folder.output_paths(spec).values()]
    if spec.writes_rows and not spec.append_row_to:
        paths.append(folder.output_file(spec))
    return [path for path in paths if path.parent == folder.outputs]


def _replaced(spec: JobSpec, *, overwrite: bool) -> Path | None:
    """The file with a path of its own that the rows are to replace, if it is there. Only when the job has completed: an
    earlier output is better than none.

    Raises:
        InvalidInput: it is there, and is not to be replaced, or is no file.
    """
    if not spec.writes_rows or not spec.append_row_to or not spec.outputs[spec.append_row_to].path:
        return None
    target = JobFolder(Path(), "").output_file(spec)
    if not os.path.lexists(target):
        return None
    if target.is_symlink() or not target.is_file():
        raise InvalidInput.at(f"/outputs/{spec.append_row_to}/path", f"{target} is there already, and is no file")
    if not overwrite:
        where, hint = f"/outputs/{spec.append_row_to}/path", "name another file, or replace it with --overwrite"
        raise InvalidInput.at(where, f"{target} is there already", hint)
    return target


def _beside(target: Path) -> Path:
    """A name for what is to take a file's place; how it ends is what the file's format depends on."""
    return target.with_name(f".parallelrun-{secrets.token_hex(6)}{target.suffix}")


def _with_rows_in(spec: JobSpec, file: Path) -> JobSpec:
    """The job with the rows of its named output in another file of the same folder."""
    name = spec.append_row_to
    output = spec.outputs[name]
    if output.type == "uri_folder":
        return spec.model_copy(update={"append_row_file_name": file.name})
    changed = output.model_copy(update={"path": str(file)})
    return spec.model_copy(update={"outputs": {**spec.outputs, name: changed}})


def _here(spec: JobSpec) -> JobSpec:
    """The job with its outputs in its own folder, from which they are handed over."""
    return spec.model_copy(update={"output": ""})


def _check_apart(folder: Path, spec: JobSpec) -> None:
    """Check that the job doesn't read what it or an earlier run writes. Raises InvalidInput."""
    for path in spec.data_paths():
        if _includes(path, folder.resolve()):
            raise InvalidInput.at("--output", f"{folder} is part of the job's own input {path}", "name another folder")
    code = Path(spec.code).resolve()
    # Of the code, all but the folders of runs is taken: with this one, the script would be left out.
    if code in folder.resolve().parents and (code / spec.entry_script).is_relative_to(folder.resolve()):
        raise InvalidInput.at("--output", f"{folder} holds the job's own entry script", "name another folder")


def _includes(path: str, folder: Path) -> bool:
    """Whether files in a folder belong to an input: a folder, a file, or a pattern as masters understand it."""
    fixed, pattern = storage_of(path).split(path)
    start = Path(fixed).resolve()
    if not folder.is_relative_to(start):
        return False
    return not pattern or Pattern(pattern).is_possible_below(folder.relative_to(start).parts)


def _for_this_machine(spec: JobSpec, nodes: int, processes: int | None) -> JobSpec:
    """The job as it runs here: with its outputs in its own folder at first, and the nodes of the command."""
    changes: dict[str, object] = {}
    if spec.instance_count is not None:
        changes["instance_count"] = nodes
    if processes is not None:
        changes["max_concurrency_per_instance"] = processes
    return _here(spec).model_copy(update=changes)


def _default_folder(name: str) -> str:
    return f"{name.replace(' ', '_')}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
