"""`parallelrun run`: a whole job on a cluster of its own, from start to finish."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from parallelrun.cli.exit_codes import ExitCode, StrictOption, Terminated, of_job
from parallelrun.cli.job_file_options import Assignments, InputPlaces, JobFile, Processes, read_with_options
from parallelrun.cli.output import OutputFormat, say, say_notes, say_summary, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parallelrun.embedded.begun_template import BegunTemplate
    from parallelrun.embedded.local_run import RunEnd, RunOptions, RunResult
    from parallelrun.models import Job
    from parallelrun_core.intake.reading import Reading

_RETRY: Final = "another run with --resume-from this folder"
_RETRY_LATER: Final = "run it again with --keep, and after that with --resume-from its folder"
_OF_THE_CODE: Final = re.compile(r'^ *File "(?![/<])')
"""The start of a traceback line about a file in the code folder."""

OutputPlace = Annotated[
    str | None,  # a URL as a path would lose one of its slashes
    typer.Option(
        metavar="DIR",
        help="Folder for output and logs, or a URL for the output.",
        show_default="the job's, else ./NAME-TIME",
    ),
]


def run_command(
    context: typer.Context,
    job_file: JobFile,
    *,
    output: OutputPlace = None,
    nodes: Annotated[int, typer.Option(min=1, max=64, help="Number of nodes.")] = 1,
    processes: Processes = None,
    assignments: Assignments = None,
    inputs: InputPlaces = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the working data even if the job completes.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace what an earlier run left in DIR, or at an output file's own path."),
    ] = False,
    resume_from: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take over what the earlier run in DIR has finished, and run only the rest."),
    ] = None,
    limits: Annotated[
        list[Path] | None,
        typer.Option("--limit", metavar="FILE", help="A limit that the job names in rate_limits. Can be repeated."),
    ] = None,
    strict: StrictOption = False,
    form: Annotated[
        OutputFormat, typer.Option("--format", "-o", help="The form of what is printed.")
    ] = OutputFormat.TABLE,
) -> None:
    """Run one job on this machine.

    A cluster of processes is started for it, and ends with it. Output and logs are in DIR.
    """
    from parallelrun.embedded.local_run import RunOptions

    reading = read_with_options(job_file, assignments, inputs)
    say_notes(reading.notes)
    _say_what_differs(reading, nodes)
    options = RunOptions(
        folder=output,
        nodes=nodes,
        processes=processes,
        overwrite=overwrite,
        keep=keep,
        resume_from=resume_from,
        limits=limits or (),
    )
    end = _run(reading, options, context.obj)
    result = end.result
    show(_data(result), form, names=(result.job.id,), lines=_places(result))
    raise typer.Exit(_exit_code(end, strict=strict))


def _run(reading: Reading, options: RunOptions, template: BegunTemplate | None) -> RunEnd:
    """Run a job while its progress is shown, and say how it has ended."""
    from parallelrun.embedded.local_run import run_here
    from parallelrun.progress.plain import display_on

    try:
        return run_here(
            reading,
            options,
            resume_option=lambda folder: f"--resume-from {folder}",
            display=display_on(sys.stderr, title=reading.spec.name),
            template=template,
            on_end=lambda end: _say_how_it_ended(end, reading),
        )
    except BaseException as error:  # an interrupt, too
        for note in getattr(error, "__notes__", ()):
            say(note)
        raise


def _say_what_differs(reading: Reading, nodes: int) -> None:
    """Print what the job asks for that a run on this machine doesn't have."""
    from parallelrun_core.spec.notify import Notified

    for path, each in reading.jobs():
        if (count := each.job.instance_count or 0) > nodes:
            subject = f"step {path}" if path else "the job"
            say(
                f"note: {subject} asks for {count} nodes, and this run has {nodes}; --nodes {count} starts as many here"
            )
    if any(getattr(reading.spec, name) is not None for name in Notified.model_fields):
        say("note: nobody is notified: the cluster of `parallelrun run` ends with its job; `job create` does notify")


def _say_how_it_ended(end: RunEnd, reading: Reading) -> None:
    from parallelrun.progress.summary import is_clean, summary

    job, logs = end.result.job, end.result.logs
    retry = _RETRY if end.result.working_data else _RETRY_LATER
    lines = summary(
        job, log_hint=lambda log: f"{logs}/{log}", retry=retry, step_hint=lambda step: f"{logs}/{step.name}"
    )
    if job.is_pipeline:
        lines = [line for line in lines if "parallelrun job " not in line]  # there is no server to ask any more
    code = _code_of_what_failed(job, reading)
    # Terminals and editors can open full paths.
    clickable = [_OF_THE_CODE.sub(lambda start: f"{start[0]}{code}/", line) if code else line for line in lines]
    say_summary(clickable, is_clean=is_clean(end.result.job))
    if end.result.working_data:
        say(f"working data: {end.result.working_data}")
    if end.resume_hint:
        say(end.resume_hint)


def _code_of_what_failed(job: Job, reading: Reading) -> str:
    """The folder with the code of the job, or of the step of a pipeline that failed first; empty if it isn't known."""
    codes = {path: each.job.code for path, each in reading.jobs()}
    failed = next((step.name for step in job.steps if step.state == "failed"), "")
    return codes.get(failed, "")


def _places(result: RunResult) -> Iterator[str]:
    """Yield where everything is, in lines."""
    from parallelrun_core.untrusted.sanitize import visible

    if rows := result.output or result.output_url:
        yield visible(f"output: {rows}", lines=False)
    for name, path in {**result.outputs, **result.output_urls}.items():
        yield visible(f"output {name}: {path}", lines=False)
    for asset in result.registered:
        yield visible(f"registered: {asset}", lines=False)
    if result.logs:
        yield visible(f"logs: {result.logs}", lines=False)


def _data(result: RunResult) -> dict[str, object]:
    outputs = {**result.outputs, **result.output_urls}
    return {
        "job": result.job,
        "output": str(result.output or result.output_url) or None,
        "outputs": {name: str(place) for name, place in outputs.items()},
        "registered": [*result.registered],
        "logs": str(result.logs) if result.logs else None,
        "working_data": str(result.working_data) if result.working_data else None,
    }


def _exit_code(end: RunEnd, *, strict: bool) -> ExitCode:
    if end.interrupt is not None:
        return ExitCode.TERMINATED if isinstance(end.interrupt, Terminated) else ExitCode.INTERRUPTED
    return of_job(end.result.job, strict=strict)
