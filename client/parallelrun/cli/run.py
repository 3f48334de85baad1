"""`parallelrun run`: a whole job on a cluster of its own, from start to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run_command(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.yml", help="The job file.", show_default=False)],
    *,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for output and logs.", show_default="the job's, else ./NAME-TIME"),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, max=64, help="Agents.")] = 1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Workers on each node.", show_default="the CPUs, shared out")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a field. Any number of times.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the working data of a job that completed, too.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that is there already.")] = False,
    resume_from: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take over what the earlier run in DIR has finished, and run only the rest."),
    ] = None,
) -> None:
    """Run a job on a cluster that is there for this job only, and put output and logs into DIR."""
    from parallelrun.cli.local_run import LocalRun
    from parallelrun.cli.output import say_notes
    from parallelrun.spec_file import check_paths, read_job_file

    reading = read_job_file(job_file, assignments or ())
    spec = reading.spec
    with reading.told_of_the_document():
        check_paths(spec)
    say_notes(reading.notes)
    run = LocalRun(
        spec,
        folder=output,
        nodes=nodes,
        processes=processes,
        keep=keep,
        overwrite=overwrite,
        resume_from=resume_from,
    )
    raise typer.Exit(run.run())
