"""The exit codes of commands. SIGTERM and SIGHUP end a command as Ctrl-C does: with all cleanup."""

from __future__ import annotations

import signal
from enum import IntEnum
from types import FrameType
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
    return {"completed": ExitCode.OK, "failed": ExitCode.JOB_FAILED, "canceled": ExitCode.JOB_CANCELED}.get(
        state, ExitCode.USAGE
    )


class Terminated(KeyboardInterrupt):
    """A signal has asked this process to end; its text is the name of the signal."""


def raise_on_sigterm() -> list[Terminated]:
    """Make both signals raise `Terminated` in the main thread, unless this process was started to ignore them.

    Returns:
        What they have raised: empty, until one comes.
    """
    raised: list[Terminated] = []

    def raise_terminated(number: int, _frame: FrameType | None) -> None:
        raised.append(Terminated(signal.Signals(number).name))
        raise raised[-1]

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, raise_terminated)
    return raised
