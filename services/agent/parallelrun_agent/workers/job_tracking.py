"""The run of MLflow for a job, and what its workers are told of it, where the operator has named a place for runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.service.telemetry import logger

log = logger()

_PARTS_MODE: Final = 0o770
_FILE_MODE: Final = 0o660


class JobTracking:
    """Asks for the job's run in a thread of its own. When nobody can be asked, workers start without one.

    Args:
        name: that of the run.
        changed: called in that thread when it is known.
    """

    def __init__(
        self, folder: JobFolder, name: str, settings: AgentSettings, user: WorkerUser, changed: Callable[[], None]
    ) -> None:
        self.is_ready = not settings.mlflow_tracking_uri
        self.variables: Mapping[str, str] = {}
        """For the environment of the workers."""
        if settings.mlflow_tracking_uri:
            arguments = (folder, name, settings, user, changed)
            threading.Thread(target=self._begin, args=arguments, name="mlflow", daemon=True).start()

    def _begin(
        self, folder: JobFolder, name: str, settings: AgentSettings, user: WorkerUser, changed: Callable[[], None]
    ) -> None:
        from parallelrun_core.tracking.mlflow_run import begin_run, variables_of

        uri, experiment, run_id = settings.mlflow_tracking_uri, settings.mlflow_experiment, ""
        try:
            run_id, place = begin_run(
                folder, uri, experiment=experiment, name=name, environment=settings.mlflow_credentials()
            )
            if place is not None:
                _share(place, user)
        except (OSError, ParallelRunError) as error:
            log.warning("mlflow_unreachable", job_id=folder.job_id, error=str(error))
        self.variables = variables_of(uri, experiment, run_id)
        self.is_ready = True
        changed()


def _share(run: Path, user: WorkerUser) -> None:
    """Let workers that are other users write into the folder of a run."""
    if user.is_other:
        for folder in (run, *(each for each in run.iterdir() if each.is_dir())):
            user.share(folder, _PARTS_MODE)
        for file in (each for each in run.rglob("*") if each.is_file()):
            user.share(file, _FILE_MODE)
