"""Runs a command of Slurm: bounded in time, and with an environment of which nothing can leak into a job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from parallelrun_provisioner.engines.interface import EngineError
from parallelrun_provisioner.engines.slurm.words import error_in_words

_TIMEOUT_S: Final = 20.0
_VARIABLES: Final = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF")
"""A job begins with what sbatch has. No other SLURM_ or SBATCH_ variable, as those of a shell that is itself in a job
would change what is sent."""


class SlurmCommandFailed(EngineError):
    """The command has ended with an error; its text is Slurm's."""


def run(command: str, arguments: Sequence[str], *, stdin: str = "", variables: Mapping[str, str] | None = None) -> str:
    """Return what the command writes to its standard output.

    Raises:
        CommandFailed: it says that it has failed.
        EngineError: there is no such command, or it doesn't answer in time.
    """
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    try:
        done = subprocess.run(
            [command, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            cwd="/",
            encoding="utf-8",
            env={**environment, "LC_ALL": "C", **(variables or {})},
            errors="replace",
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"{command} has not answered within {_TIMEOUT_S:.0f} s: is slurmctld running?") from error
    except OSError as error:
        why = f"{command} can't be run: {error.strerror}; Slurm's commands must be on the provisioner's PATH"
        raise EngineError(why) from error
    if done.returncode != 0:
        raise SlurmCommandFailed(error_in_words(done.stderr) or f"{command} has ended with code {done.returncode}")
    return done.stdout
