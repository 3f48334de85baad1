"""`parallelrun job stream`: a job is followed to its end, and its exit code is the job's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from parallelrun.cli.exit_codes import ExitCode, StrictOption, of_job
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import say, say_summary
from parallelrun.cli.server import Client

if TYPE_CHECKING:
    from parallelrun.models import Job


def stream(client: Client, job_id: JobId, *, strict: StrictOption = False) -> None:
    """Follow a job until it ends; the exit code is the job's. Ctrl-C stops following, not the job."""
    raise typer.Exit(follow_job(client, client.jobs.get(job_id), strict=strict))


def check_strict(*, strict: bool, follows: bool) -> None:
    """Raise typer.BadParameter if `--strict` asks for the exit code of a job that isn't followed."""
    if strict and not follows:
        raise typer.BadParameter("it is about how a job ends: add --stream, which waits for it", param_hint="--strict")


def follow_job(client: Client, job: Job, *, strict: bool = False) -> ExitCode:
    """Show how a job goes on until it ends; the exit code is the job's."""
    from parallelrun.resources.watch import watch_on_stderr

    try:
        ended = watch_on_stderr(client, job)
    except KeyboardInterrupt:
        say(f"\nThe job continues. Follow it again: parallelrun job stream {job.id}")
        say(f"                   Cancel it:       parallelrun job cancel {job.id}")
        raise
    say_end_of(ended)
    if ended.output:
        from parallelrun_core.storage.location import is_url

        fetch = f"fetch the output: parallelrun job download {job.id}"
        say(f"output: {ended.output.path}" if is_url(ended.output.path) else fetch)
    elif ended.is_pipeline and ended.state == "completed":
        for output in ended.outputs:
            say(f"output {output.name}: {output.path or 'no step has written it'}")
        say(f"fetch the outputs: parallelrun job download {job.id}")
    return of_job(ended, strict=strict)


def say_end_of(job: Job) -> None:
    """Print how a job of a server has ended, and what to do about it."""
    from parallelrun.progress.summary import is_clean, summary

    lines = summary(
        job,
        log_hint=lambda log: f"parallelrun job logs {job.id} {log}",
        retry=f"parallelrun job retry {job.id}",
        resume=f"parallelrun job resume {job.id}",
        step_hint=lambda step: f"parallelrun job logs {step.job}",
    )
    say_summary(lines, is_clean=is_clean(job))
