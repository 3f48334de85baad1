"""`Workspace` and what is looked up in it."""

from __future__ import annotations

import os
from typing import Any

from parallelrun_worker.shims.job import about_job, not_here
from parallelrun_worker.tracking.imports import begin_run


class Workspace:
    """The cluster. There is one, so all ways to it lead to the same."""

    def __init__(self, subscription_id: str = "", resource_group: str = "", workspace_name: str = "", **_: Any) -> None:
        self.name = workspace_name or "parallelrun"
        self.subscription_id = subscription_id or "00000000-0000-0000-0000-000000000000"
        self.resource_group = resource_group or "parallelrun"
        self.location = "local"

    @classmethod
    def from_config(cls, path: str | None = None, **_: Any) -> Workspace:
        """The cluster, whatever the file says; it needs not be there."""
        return cls()

    @classmethod
    def get(cls, name: str = "", *, subscription_id: str = "", resource_group: str = "", **_: Any) -> Workspace:
        return cls(subscription_id, resource_group, name)

    @property
    def models(self) -> dict[str, Any]:
        """The models that the job can use, by name."""
        from parallelrun_worker.shims.model import Model

        names = dict.fromkeys(str(each["name"]) for each in about_job().get("models", ()))
        return {name: Model(self, name) for name in names}

    @property
    def datasets(self) -> dict[str, Any]:
        """The inputs of the job, by name."""
        from parallelrun_worker.shims.dataset import Dataset

        inputs = about_job().get("inputs", {})
        return {name: Dataset(name, path) for name, path in inputs.items() if isinstance(path, str)}

    def get_default_datastore(self) -> Any:
        raise not_here("Workspace.get_default_datastore", "what a job reads and writes are its inputs and outputs")

    def get_default_keyvault(self) -> Keyvault:
        return Keyvault()

    def get_mlflow_tracking_uri(self, *_: Any, **_named: Any) -> str:
        """Return where the job's run is, as the environment says, too; empty: MLflow's own default."""
        begin_run()
        return os.environ.get("MLFLOW_TRACKING_URI", "")

    def get_details(self) -> dict[str, Any]:
        return {"name": self.name, "location": self.location}


class Keyvault:
    """The secrets of the job, which are environment variables."""

    def get_secret(self, name: str) -> str:
        """A secret.

        Raises:
            KeyError: the job names no such secret (docs/job-spec.md).
        """
        return os.environ[name]


class Datastore:
    """Places in object stores, which scripts reach as inputs and outputs."""

    @staticmethod
    def get(workspace: Any, datastore_name: str) -> Any:
        raise not_here("Datastore.get", "make what is read an input of the job: azureml://datastores/NAME/paths/PATH")

    get_default = get
