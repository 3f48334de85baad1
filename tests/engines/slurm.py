"""Finds a Slurm cluster, or says what is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

REQUIRED: Final = "PARALLELRUN_REQUIRE_SLURM"
"""With 1, tests that need a cluster fail where there is none."""
_TOOL: Final = Path(__file__).with_name("start") / "slurm.sh"
"""Installs Slurm and brings up a cluster on one machine, as root on Debian."""
_NODES: Final = 10
_ASK_S: Final = 30
_START_S: Final = 180
_HOW: Final = f"start one (as root on Debian: {REQUIRED}=1 does it), and name its slurm.conf in SLURM_CONF"


class SlurmMissing(Exception):
    """There is no cluster that the tests could use."""


def reach() -> None:
    """Make sure that Slurm's commands reach a cluster in which jobs can start.

    Raises:
        SlurmMissing: why there is none, and how to get one.
    """
    problem = _problem()
    if problem and is_required() and "SLURM_CONF" not in os.environ:
        done = subprocess.run([_TOOL, "up", str(_NODES)], capture_output=True, text=True, timeout=_START_S, check=False)
        said = subprocess.run([_TOOL, "env"], capture_output=True, text=True, timeout=_ASK_S, check=True).stdout
        os.environ["SLURM_CONF"] = said.strip().partition("SLURM_CONF=")[2]
        problem = _problem() if done.returncode == 0 else " ".join(done.stderr.split())
    if problem:
        raise SlurmMissing(f"no Slurm answers: {problem}; {_HOW}")


def is_required() -> bool:
    """Whether it is a failure when there is none."""
    return os.environ.get(REQUIRED, "") not in ("", "0")


def jobs() -> dict[str, str]:
    """The ids of all jobs that wait or run, by their names; those that are being ended are no more among them."""
    lines = _run("squeue", "--noheader", "--states=PENDING,CONFIGURING,RUNNING", "--format=%j|%A").splitlines()
    return dict(line.rpartition("|")[::2] for line in lines)


def cancel(job: str, *how: str) -> None:
    """End a job, or send it a signal; harmless when it has ended."""
    _run("scancel", "--quiet", *how, job)


def _problem() -> str:
    try:
        return "" if _run("sinfo", "--noheader", "--states=idle,mixed,allocated").strip() else "no node is up"
    except (OSError, subprocess.SubprocessError) as error:
        return " ".join(str(getattr(error, "stderr", None) or error).split())


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=True)
    return done.stdout
