"""Jobs on this machine, from Python.

from parallelrun import run

result = run("job.yml", output="out")
print(result.output.read_text())
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parallelrun.embedded.local_run import RunOptions, RunResult, run_here
from parallelrun.job_file.reading import Document, read_spec
from parallelrun.progress.display import Display
from parallelrun.progress.plain import display_on
from parallelrun.resources.names import local_resolver
from parallelrun_core.spec import JobSpec, PipelineSpec


def run(
    spec: JobSpec | PipelineSpec | dict[str, Any] | Document | str | Path,
    *,
    output: str | Path | None = None,
    nodes: int = 1,
    processes: int | None = None,
    overwrite: bool = False,
    keep: bool = False,
    resume_from: str | Path | None = None,
    limits: Sequence[Mapping[str, Any] | str | Path] = (),
    progress: bool = True,
) -> RunResult:
    """Run a job on a temporary cluster on this machine, as `parallelrun run` does; returns when it has completed.

    Args:
        spec: as for `Client.jobs.create`.
        output: folder for outputs and logs; by default the job's own, else `NAME-TIME` in the current folder.
        nodes: number of agents.
        processes: workers on each node; by default, the CPUs are divided between the nodes.
        overwrite: replace an existing output, and the unfinished work of an earlier run in this folder. That includes a
            file with rows for which the job names a path, once the job has completed; never a folder of the script's.
        keep: keep the working data even if the job completes.
        resume_from: the folder of an earlier run, whose finished work is taken over.
        limits: those that the job names in `rate_limits`, as documents, or as paths of files with them.
        progress: show progress on stderr.

    Raises:
        InvalidInput: a field is wrong, or the folder can't be used. Nothing has been started.
        JobFailed, JobCanceled: the job ended without a result. Its logs are in the folder.
        ClusterFailed: the cluster can't start, or has stopped working.
    """
    reading = read_spec(spec, local_resolver)
    end = run_here(
        reading,
        RunOptions(
            folder=output,
            nodes=nodes,
            processes=processes,
            overwrite=overwrite,
            keep=keep,
            resume_from=resume_from,
            limits=limits,
        ),
        resume_option=lambda folder: f"resume_from={str(folder)!r}",
        display=display_on(sys.stderr, title=reading.spec.name) if progress else Display(),
    )
    return end.completed()
