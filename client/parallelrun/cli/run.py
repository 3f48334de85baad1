"""`parallelrun run`: a whole job on a cluster of its own, from start to finish."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.exit_codes import ExitCode, of_state
from parallelrun.cli.interrupts import Terminated

if TYPE_CHECKING:
    from parallelrun.embedded.local_run import LocalRun, RunResult

_OF_THE_CODE: Final = re.compile(r'^ *File "(?![/<])')
"""The start of a traceback line about a file in the code folder."""


def run_command(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.yml", help="The job file.", show_default=False)],
    *,
    output: Annotated[
        str | None,  # a URL as a path would lose one of its slashes
        typer.Option(metavar="DIR", help="Folder for output and logs.", show_default="the job's, else ./NAME-TIME"),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, max=64, help="Number of nodes.")] = 1,
    processes: Annotated[int | None, typer.Option(min=1, help="Workers per node.", show_default="CPUs / nodes")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a field. Can be repeated.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the working data even if the job completes.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace what an earlier run left in DIR, or at an output file's own path."),
    ] = False,
    resume_from: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take over what the earlier run in DIR has finished, and run only the rest."),
    ] = None,
) -> None:
    """Run one job on this machine, on a temporary cluster, and write output and logs to DIR."""
    from parallelrun.cli.output import say_notes
    from parallelrun.embedded.local_run import LocalRun
    from parallelrun.progress.display import display_on
    from parallelrun.spec_file import check_paths, read_job_file

    reading = read_job_file(job_file, assignments or ())
    spec = reading.spec
    with reading.locating_problems():
        check_paths(spec)
    say_notes(reading.notes)
    with reading.locating_problems():
        run = LocalRun(
            spec,
            folder=output,
            nodes=nodes,
            processes=processes,
            keep=keep,
            overwrite=overwrite,
            resume_from=resume_from,
            display=display_on(sys.stderr, title=spec.name),
            on_end=lambda result: _say_how_it_ended(result, code=spec.code),
        )
    try:
        with reading.locating_problems():  # the API checks more than `check_paths`
            result = run.run()
    finally:
        if run.resumable:
            _say_how_to_resume(run.resumable)
    _print_places(result)
    raise typer.Exit(_exit_code(result, run))


def _say_how_it_ended(result: RunResult, *, code: str) -> None:
    """Print how the job has ended."""
    from parallelrun.cli.output import say
    from parallelrun.cli.summary import summary

    for line in summary(result.job, log_hint=lambda log: f"{result.logs}/{log}"):
        # Terminals and editors can open full paths.
        say(_OF_THE_CODE.sub(lambda found: f"{found[0]}{code}/", line))
    if result.working_data:
        say(f"working data: {result.working_data}")
        if result.job.state != "completed" and result.job.progress.done:
            _say_how_to_resume(result.working_data.parent)


def _say_how_to_resume(folder: Path) -> None:
    from parallelrun.cli.output import say

    say(f"to run only the rest, into another folder, add --resume-from {folder}")


def _print_places(result: RunResult) -> None:
    """Print on stdout where everything is."""
    if result.output:
        print(f"output: {result.output}")
    for name, path in result.outputs.items():
        print(f"output {name}: {path}")
    if result.logs:
        print(f"logs: {result.logs}")


def _exit_code(result: RunResult, run: LocalRun) -> ExitCode:
    if run.interrupt is not None:
        return ExitCode.TERMINATED if isinstance(run.interrupt, Terminated) else ExitCode.INTERRUPTED
    return of_state(result.job.state)
