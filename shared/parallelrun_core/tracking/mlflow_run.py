"""The run of MLflow that belongs to a job: `mlflow.json` in the job's folder says which it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import write_once
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import PRIVATE_FILE
from parallelrun_core.tracking.mlflow_folder import end_in, run_in
from parallelrun_core.tracking.mlflow_server import MlflowServer
from parallelrun_core.wire.states import JobState

_STATUS: Final = {
    JobState.COMPLETED: "FINISHED", JobState.FAILED: "FAILED", JobState.CANCELED: "KILLED",
}  # fmt: skip


class TrackedRun(msgspec.Struct, kw_only=True, frozen=True):
    """`mlflow.json`: which run is the job's."""

    schema: int = SCHEMA
    uri: str
    run_id: str


def checked_uri(uri: str) -> str:
    """Return where runs are, as it was given.

    Raises:
        ValueError: it has a password in it, which would be in logs, or is a relative path.
    """
    parts = urlsplit(uri)
    if parts.username or parts.password:
        raise ValueError("must have no credentials: MLFLOW_TRACKING_USERNAME and …_PASSWORD, or …_TOKEN, are for them")
    if uri and not parts.scheme and not uri.startswith("/"):
        raise ValueError("must be the address of a tracking server, or an absolute path")
    return uri


def begin_run(
    folder: JobFolder, uri: str, *, experiment: str, name: str, environment: Mapping[str, str]
) -> tuple[str, Path | None]:
    """The id of the job's run, and its folder if it is in one; the first who asks begins it.

    Both are empty for what only MLflow's clients understand, such as a database: each process then begins its own run.

    Raises:
        OSError: the server or the folder can't be reached, or refuses.
        CorruptLog: what is recorded can't be read.
    """
    job_id, place = folder.job_id, _folder_of(uri)
    if place is not None:
        run_id, path = run_in(place, job_id, experiment, name)
        _record(folder, TrackedRun(uri=uri, run_id=run_id))
        return run_id, path
    if not uri.startswith(("http:", "https:")):
        return "", None
    earlier_run = _recorded(folder)
    if earlier_run is not None and earlier_run.uri == uri:
        return earlier_run.run_id, None
    server = MlflowServer(uri, environment)
    run_id = server.run_of(job_id, experiment, name)
    recorded = _record(folder, TrackedRun(uri=uri, run_id=run_id))
    if recorded.uri == uri and recorded.run_id != run_id:  # two nodes have asked at once
        server.delete(run_id)
    return recorded.run_id if recorded.uri == uri else run_id, None


def end_run(folder: JobFolder, state: JobState, environment: Mapping[str, str], uri: str) -> None:
    """Record with MLflow how the job has ended. Nothing, if it has no run.

    Args:
        environment: its credentials, which are told to no other server than that of `uri`.

    Raises:
        OSError: the server or the folder can't be reached, or refuses.
        CorruptLog: what is recorded can't be read.
    """
    run = _recorded(folder)
    if run is None:
        return
    if (place := _folder_of(run.uri)) is not None:
        end_in(place, run.run_id, _STATUS[state])
    else:
        MlflowServer(run.uri, environment if run.uri == uri else {}).end(run.run_id, _STATUS[state])


def variables_of(uri: str, experiment: str, run_id: str) -> dict[str, str]:
    """Return what MLflow's clients read from their environment."""
    variables = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_NAME": experiment}
    if run_id:
        variables["MLFLOW_RUN_ID"] = run_id
    if _folder_of(uri) is not None:
        variables["MLFLOW_ALLOW_FILE_STORE"] = "true"  # releases from 3.7 on refuse a folder otherwise
    return variables


def _folder_of(uri: str) -> Path | None:
    if uri.startswith("/"):
        return Path(uri)
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _recorded(folder: JobFolder) -> TrackedRun | None:
    try:
        return decode((path := folder.layout.tracked_run).read_bytes(), TrackedRun, path)
    except FileNotFoundError:
        return None


def _record(folder: JobFolder, run: TrackedRun) -> TrackedRun:
    """Record which run is the job's; returns what counts, which another may have recorded."""
    try:
        write_once(folder.layout.tracked_run, encode(run), mode=PRIVATE_FILE)
    except FileExistsError:
        return _recorded(folder) or run
    return run
