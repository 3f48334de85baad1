"""The exit codes of commands."""

from __future__ import annotations

from enum import IntEnum


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


def of_state(state: str) -> ExitCode:
    """The exit code for the end of a job."""
    return {"completed": ExitCode.OK, "failed": ExitCode.JOB_FAILED, "canceled": ExitCode.JOB_CANCELED}.get(
        state, ExitCode.USAGE
    )
