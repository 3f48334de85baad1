"""Errors as users see them: `error: …`, a line for each problem, and what to do. Never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from parallelrun.cli.exit_codes import ExitCode, of_state
from parallelrun.errors import (
    ClusterFailed,
    ConnectionFailed,
    InvalidInput,
    InvalidRequest,
    JobCanceled,
    JobFailed,
    ParallelRunError,
    TimedOut,
    Unauthorized,
    Unavailable,
)
from parallelrun.progress.text import clean

_SHOW_TRACEBACK: Final = "PARALLELRUN_TRACEBACK"


def report(error: Exception) -> int:
    """Print an error for the user; returns its exit code."""
    for line in lines_about(error):
        print(line, file=sys.stderr)
    if os.environ.get(_SHOW_TRACEBACK):
        traceback.print_exception(error)
    return exit_code_of(error)


def lines_about(error: Exception) -> list[str]:
    if isinstance(error, ParallelRunError):
        headline = "invalid input:" if error.problems else error.message
        lines = [f"error: {clean(headline, lines=True)}"]
        for problem in error.problems:
            parts = filter(None, (problem.place, problem.pointer, problem.message))
            lines.append(f"  {clean(': '.join(parts))}")
            if problem.hint:
                lines.append(f"    hint: {clean(problem.hint)}")
        if isinstance(error, Unauthorized) and error.status == HTTPStatus.UNAUTHORIZED:  # else its text says who may
            hint = "give --token, or set PARALLELRUN_TOKEN; the cluster of `parallelrun up` needs neither"
            lines.append(f"  hint: {hint}")
        return lines
    show = getattr(error, "format_message", None)
    if show is not None:  # a usage error
        text = clean(show().replace("Value error, ", ""), lines=True)  # which typer has from pydantic
        if text.startswith("Usage: "):  # the whole help: a group of commands was called without one
            return [text]
        usage = getattr(getattr(error, "ctx", None), "get_usage", None)
        return [*([usage()] if usage else []), f"error: {text}", *_folder_hints(error)]
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return [f"error: {clean(where + (error.strerror or str(error)))}"]
    return [
        f"error: {type(error).__name__}: {clean(str(error))}",
        f"  This is a bug in parallelrun; {_SHOW_TRACEBACK}=1 shows where.",
    ]


def _folder_hints(error: Any) -> Iterator[str]:
    """Yield what to do if somebody gave the folder for an output to `-o`, which is the form of what is printed."""
    if "-o" in getattr(getattr(error, "param", None), "opts", ()):
        for option in error.ctx.command.params:
            if option.metavar == "DIR" and option.opts[0] in ("--output", "--path"):
                yield f"  hint: a folder goes to {option.opts[0]}"


def exit_code_of(error: Exception) -> ExitCode:
    match error:
        case InvalidInput():
            # What the user typed is wrong, not what the job file says.
            typed = any(problem.pointer.startswith("--") or problem.pointer.isupper() for problem in error.problems)
            return ExitCode.USAGE if typed else ExitCode.INVALID_SPEC
        case InvalidRequest() if error.problems:
            return ExitCode.INVALID_SPEC
        # A server that refuses something over a quota is well.
        case ConnectionFailed() | Unavailable() | ClusterFailed() if error.code != "quota_exceeded":
            return ExitCode.UNREACHABLE
        case TimedOut():
            return ExitCode.TIMEOUT
        case JobFailed() | JobCanceled():
            return of_state(error.job.state)
        case _:
            return ExitCode.USAGE
