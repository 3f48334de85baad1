"""The worker as the user's code sees it, in the worker itself and in the processes of a command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parallelrun_worker.frames import WorkerConfig

OF_A_COMMAND = "_PARALLELRUN_COMMAND"
"""Of the processes of a command, the variable with the path of a file that has the settings, as JSON."""
_SETTINGS = ("job_id", "node", "process", "logs", "output_dir", "working_dir", "logging_level", "job")


def settings_of(config: WorkerConfig) -> dict[str, Any]:
    """The settings of a worker that its scripts can see."""
    return {key: getattr(config, key) for key in _SETTINGS}


def settings_of_a_command() -> dict[str, Any]:
    """Return the settings of the command that has started this process; none if it is a worker, or no job's at all."""
    path = os.environ.get(OF_A_COMMAND)
    if not path:
        return {}
    import json

    try:
        with open(path) as file:
            settings: dict[str, Any] = json.load(file)
    except (OSError, ValueError):  # the command is over, or has removed it
        return {}
    return settings
