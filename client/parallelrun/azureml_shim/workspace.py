"""Workspaces, experiments, runs, computes and models of v1, with the server that `parallelrun` commands find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from parallelrun.azureml_shim.data import Datastore, ToldAsMissing
from parallelrun.builders.v1_pipeline import Pipeline
from parallelrun.client import Client

_STATUS = {"queued": "NotStarted", "processing": "Running", "finalizing": "Finalizing"}


class ComputeTargetException(Exception):
    """Raised by v1 where there is no compute of a name; here, there is one of each name."""


class ComputeTarget(ToldAsMissing):
    """A compute by its name: a job's `compute`, where computes are defined, and without effect where none is."""

    def __init__(self, workspace: Any = None, name: str = "cpu-cluster") -> None:
        self.name = name

    @staticmethod
    def create(workspace: Any, name: str, provisioning_configuration: Any = None) -> AmlCompute:
        """The compute of this name; nothing is created (docs/computes.md)."""
        return AmlCompute(workspace, name)

    def wait_for_completion(self, show_output: bool = False, **_: Any) -> None:
        """Return at once."""

    def get_status(self) -> SimpleNamespace:
        """A status that says that the compute is there."""
        return SimpleNamespace(provisioning_state="Succeeded", serialize=lambda: {"provisioningState": "Succeeded"})


class AmlCompute(ComputeTarget):
    """v1's `AmlCompute`."""

    @staticmethod
    def provisioning_configuration(**settings: Any) -> dict[str, Any]:
        """The settings, which have no effect."""
        return settings


class _Computes(Mapping[str, ComputeTarget]):
    """Computes by name: there is one of each name."""

    def __getitem__(self, name: str) -> ComputeTarget:
        return AmlCompute(None, name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Workspace(ToldAsMissing):
    """The one workspace of a server; names of subscription, resource group and workspace don't matter."""

    def __init__(self, *_: Any, name: str = "parallelrun", **__: Any) -> None:
        self.name, self.resource_group, self.location, self.subscription_id = name, "local", "local", "local"
        self.compute_targets: Mapping[str, ComputeTarget] = _Computes()

    @classmethod
    def from_config(cls, *_: Any, **__: Any) -> Workspace:
        """The workspace; no `config.json` is read."""
        return cls()

    @classmethod
    def get(cls, name: str, **_: Any) -> Workspace:
        """The workspace, by any name."""
        return cls(name=name)

    def get_default_datastore(self) -> Datastore:
        """The default datastore."""
        return Datastore(self)

    @property
    def datastores(self) -> Mapping[str, Datastore]:
        """The datastores of the server by their names."""
        with Client() as client:
            return {each.name: Datastore(self, each.name) for each in client.datastores.list()}


class OutputData(ToldAsMissing):
    """The outputs of a step."""

    def __init__(self, job_id: str, name: str) -> None:
        self._job_id = job_id
        self.name = name
        self.path_on_datastore = f"azureml/{job_id}/{name}"
        """The folder below that of a download in which the files are then, as in v1."""

    def download(self, local_path: str | Path = ".", **_: Any) -> int:
        """Download them below a folder, these into `path_on_datastore`; returns the number of files."""
        folder = Path(local_path, self.path_on_datastore).parent
        folder.mkdir(parents=True, exist_ok=True)
        with Client() as client:
            return sum(1 for _ in client.outputs.download_all(self._job_id, folder))


class Run(ToldAsMissing):
    """A job, or the job of a step."""

    def __init__(self, job_id: str, name: str = "") -> None:
        self.id = job_id
        self.name = name

    def get_portal_url(self) -> str:
        """The path of the job's page."""
        return f"/jobs/{self.id}"

    def get_status(self) -> str:
        """The state of the job, as v1 calls it."""
        with Client() as client:
            state = client.jobs.get(self.id).state
        return _STATUS.get(state, state.capitalize())

    def wait_for_completion(self, show_output: bool = True, **_: Any) -> str:
        """Wait for the end of the job, and return its status.

        Raises:
            JobFailed, JobCanceled: it hasn't completed.
        """
        with Client() as client:
            for job in client.jobs.follow(self.id):
                if show_output:
                    print(f"{self.id}: {job.state}")
            client.jobs.wait(self.id)
        return self.get_status()

    def find_step_run(self, name: str) -> list[Run]:
        """The jobs of the steps of this name."""
        with Client() as client:
            job = client.jobs.get(self.id)
        runs = [Run(step.job, step.name) for step in job.steps if step.name == name and step.job]
        return runs or ([self] if not job.steps else [])

    def get_children(self, **_: Any) -> Iterator[Run]:
        """The jobs of all steps, in their order."""
        with Client() as client:
            steps = client.jobs.get(self.id).steps
        return iter([Run(step.job, step.name) for step in steps if step.job] or ([] if steps else [self]))

    def get_output_data(self, name: str) -> OutputData:
        """Return the outputs of the step."""
        return OutputData(self.id, name)

    def cancel(self) -> None:
        """Cancel the job."""
        with Client() as client:
            client.jobs.cancel(self.id)


PipelineRun = Run


class Experiment(ToldAsMissing):
    """The experiment, a name that groups jobs for people."""

    def __init__(self, workspace: Any = None, name: str = "Default", **_: Any) -> None:
        self.workspace, self.name = workspace, name

    def submit(
        self,
        config: Any,
        *,
        pipeline_parameters: Mapping[str, Any] | None = None,
        continue_on_step_failure: bool = False,
        regenerate_outputs: bool = False,
        **_: Any,
    ) -> Run:
        """Submit a pipeline.

        Raises:
            InvalidInput: something is wrong with it; it says where.
        """
        if isinstance(config, Pipeline):
            config = config.submitted_with(
                pipeline_parameters,
                experiment_name=self.name,
                continue_on_step_failure=continue_on_step_failure,
                regenerate_outputs=regenerate_outputs,
            )
        with Client() as client:
            return Run(client.jobs.create(config).id)


class Model(ToldAsMissing):
    """A model of the server."""

    def __init__(self, workspace: Any, name: str, version: str | int | None = None, **_: Any) -> None:
        with Client() as client:
            asset = client.models.get(name, "" if version is None else str(version))
        self.name, self.version = asset.name, asset.version

    @classmethod
    def register(  # noqa: PLR0917 - v1 has this order
        cls,
        workspace: Any,
        model_path: str,
        model_name: str,
        tags: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        description: str | None = None,
        **_: Any,
    ) -> Model:
        """Make a version of a model."""
        definition: dict[str, Any] = {"name": model_name, "path": str(Path(model_path).absolute())}
        definition |= {"description": description, "tags": tags, "properties": properties}
        with Client() as client:
            made_version = client.models.create({key: value for key, value in definition.items() if value}).version
        return cls(workspace, model_name, made_version)


class RunDetails:
    """v1's widget: it prints where the job is."""

    def __init__(self, run_instance: Run) -> None:
        self._run = run_instance

    def show(self, **_: Any) -> None:
        """Print the id of the job and the command that follows it."""
        print(f"job {self._run.id}: parallelrun job open {self._run.id}")
