"""Jobs on this machine, from Python.

from parallelrun import run

done = run("job.yml", output="out")
print(done.output.read_text())
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from parallelrun.embedded.local_run import LocalRun, RunResult
from parallelrun.errors import JobCanceled, JobFailed
from parallelrun.jobs import Document, read_any
from parallelrun.progress.display import Silent, display_on
from parallelrun.spec_file import check_paths

if TYPE_CHECKING:
    from parallelrun_core.spec import JobSpec


def run(
    spec: JobSpec | dict[str, Any] | Document | str | Path,
    *,
    output: str | Path | None = None,
    nodes: int = 1,
    processes: int | None = None,
    overwrite: bool = False,
    keep: bool = False,
    resume_from: str | Path | None = None,
    progress: bool = True,
) -> RunResult:
    """Run a job on a cluster that is there for this job only, as `parallelrun run` does; returns when it has completed.

    Args:
        spec: as for `Client.jobs.create`.
        output: folder for outputs and logs; when not given the job's, else `NAME-TIME` in the current one.
        nodes: how many agents.
        processes: workers on each node; when not given, the CPUs are shared out.
        overwrite: replace an output that is there already, and what was done of a job that didn't complete.
        keep: keep the working data of a job that completed, too.
        resume_from: the folder of an earlier run, whose finished work is taken over.
        progress: show on stderr how far it is.

    Raises:
        InvalidInput: a field is wrong, or the folder can't be used. Nothing has been started then.
        JobFailed, JobCanceled: it ended without a result. The logs are in the folder.
        ClusterFailed: the cluster can't start, or has stopped working.
    """
    reading = read_any(spec)
    with reading.told_of_the_document():
        check_paths(reading.spec)
    local = LocalRun(
        reading.spec,
        folder=Path(output) if output else None,
        nodes=nodes,
        processes=processes,
        keep=keep,
        overwrite=overwrite,
        resume_from=Path(resume_from) if resume_from else None,
        display=display_on(sys.stderr, title=reading.spec.name) if progress else Silent(),
    )
    with reading.told_of_the_document():  # the API looks closer than `check_paths`
        done = local.run()
    error: BaseException | None = local.interrupt
    if error is None and done.job.state != "completed":
        error = JobFailed(done.job) if done.job.state == "failed" else JobCanceled(done.job)
    if error is not None:
        error.add_note(f"logs: {done.logs}")
        if done.working_data and done.job.progress.done:
            folder = str(done.working_data.parent)
            error.add_note(f"to run only what is not done, into another folder: resume_from={folder!r}")
        raise error
    notes = [*map(str, reading.notes)] or done.job.notes
    return replace(done, job=msgspec.structs.replace(done.job, notes=notes))
