"""The exit codes of commands."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from parallelrun.models import Job

StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 3 if anything raised, timed out, died or was skipped."),
]


class ExitCode(IntEnum):
    """For scripts that call `parallelrun`."""

    OK = 0
    """Done; for a job: completed."""
    USAGE = 1
    """The command line is wrong, or the request was refused."""
    INVALID_SPEC = 2
    """The job spec is wrong."""
    JOB_FAILED = 3
    JOB_CANCELED = 4
    UNREACHABLE = 5
    """The server can't be reached, or the embedded cluster doesn't start."""
    TIMEOUT = 6
    INTERRUPTED = 130
    """Ctrl-C."""
    TERMINATED = 143
    """SIGTERM or SIGHUP."""


def of_job(job: Job, *, strict: bool = False) -> ExitCode:
    """The exit code for the end of a job.

    Args:
        strict: a job that has completed counts as failed if anything in it has failed or was skipped.
    """
    from parallelrun.progress.summary import is_flawless

    if strict and job.state == "completed" and not is_flawless(job):
        return ExitCode.JOB_FAILED
    return of_state(job.state)


def of_state(state: str) -> ExitCode:
    """The exit code for the end of a job."""
    return {"completed": ExitCode.OK, "failed": ExitCode.JOB_FAILED, "canceled": ExitCode.JOB_CANCELED}.get(
        state, ExitCode.USAGE
    )
