"""The job of this process, as a script sees it; outside of one, next to nothing."""

from __future__ import annotations

import os
from typing import Any

from parallelrun_worker.script_api.entry_script import EntryScript


class NotHere(ImportError):
    """Something of Azure ML that this stand-in for `azureml.core` doesn't have."""


def not_here(name: str, instead: str = "") -> NotHere:
    """The error that says what to do."""
    instead = instead or "install azureml-core in the job's environment (conda_file, pip), or leave it out"
    return NotHere(f"{name} is not part of ParallelRun's stand-in for azureml.core: {instead}.")


def about_job() -> dict[str, Any]:
    """Return what the agent says of the job: `name`, `experiment`, `tags`, `inputs`, `models`;
    empty outside of a job.
    """
    about: dict[str, Any] = EntryScript._settings.get("job") or {}
    return about


def job_id() -> str:
    """The id of the job; empty outside of one."""
    return str(EntryScript._settings.get("job_id") or os.environ.get("AZUREML_RUN_ID", ""))


def file_called(name: str) -> str:
    """Return where a file of the job's goes, with the folder for it: names below `logs` to the worker's files among the
    logs, all others to the folder of the output.

    Raises:
        ValueError: the name leads elsewhere.
    """
    parts = [part for part in str(name).replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise ValueError(f"{name!r} is not the name of a file of the job")
    settings = EntryScript._settings
    folder = str(settings.get("output_dir") or os.getcwd())
    if parts[0] == "logs" and settings.get("logs"):
        folder = os.path.join(settings["logs"], "user", "files", settings["node"], settings["process"])
    if parts[0] in ("logs", "outputs") and len(parts) > 1:
        parts = parts[1:]
    path = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def input_called(name: str) -> Any:
    """The path or value of an input, in any letter case.

    Raises:
        KeyError: there is none; says which there are.
    """
    inputs = about_job().get("inputs", {})
    for each, value in inputs.items():
        if each.lower() == name.lower():
            return value
    raise KeyError(f"The job has no input {name!r}; it has: {', '.join(inputs) or 'none'}.")
