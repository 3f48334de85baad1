"""Checks of the tools that build the Python environments that jobs ask for."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Final

from parallelrun_core.wire.finding import Check, Finding, Place, ok, warn

_ASK_S: Final = 3.0


def builder(_: Place) -> Iterator[Finding]:
    """uv, which comes with ParallelRun."""
    try:
        import uv

        path = uv.find_uv_bin()
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_ASK_S, check=True)
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        yield warn(
            f"uv can't be used ({error}): jobs with a conda_file or requirements can't run here",
            "install the Python package uv beside ParallelRun",
        )
    else:
        yield ok(f"{done.stdout.strip()} builds the environments of jobs that ask for one")


CHECKS: Final[tuple[Check, ...]] = (builder,)
