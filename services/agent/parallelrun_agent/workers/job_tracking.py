"""The run of MLflow for a job, and what its workers are told of it, where the operator has named a place for runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.service.telemetry import logger
from parallelrun_core.service.threads import started_thread
from parallelrun_core.tracking.mlflow_folder import FILES, PARTS, is_plain
from parallelrun_core.untrusted.paths import open_beneath

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
            started_thread("mlflow", self._begin, folder, name, settings, user, changed)

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
    """Let workers that are other users write into the folder of a run. Those of another node may be at work there, so
    nothing else is shared than what a run has from its begin, and no link is followed to it.

    Raises:
        OSError, ParallelRunError: something else is there.
    """
    if not user.is_other:
        return
    user.share(run, _PARTS_MODE)
    for name in (*PARTS, *FILES):
        fd = open_beneath(run.parent, f"{run.name}/{name}", os.O_PATH)
        try:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                user.share_open(fd, _PARTS_MODE)
            elif is_plain(status):
                user.share_open(fd, _FILE_MODE)
        finally:
            os.close(fd)
