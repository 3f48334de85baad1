"""Workspaces, experiments, runs, computes and models of v1, with the server that `parallelrun` commands find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from parallelrun.azureml_shim.data import Datastore
from parallelrun.builders.missing import ReportsMissing
from parallelrun.builders.parts import refuse
from parallelrun.builders.v1_pipeline import Pipeline
from parallelrun.client import Client
from parallelrun.models import Job
from parallelrun_core.problems import did_you_mean

_PROVISIONING: Final = (
    "vm_size", "vm_priority", "min_nodes", "max_nodes", "idle_seconds_before_scaledown", "admin_username",
    "admin_user_password", "admin_user_ssh_key", "vnet_resourcegroup_name", "vnet_name", "subnet_name", "tags",
    "description", "remote_login_port_public_access", "identity_type", "identity_id", "location",
    "enable_node_public_ip",
)  # fmt: skip
_STATUS: Final = {"queued": "NotStarted", "processing": "Running", "finalizing": "Finalizing"}


class ComputeTargetException(Exception):
    """Raised by v1 where there is no compute of a name; here, there is one of each name."""


class ComputeTarget(ReportsMissing):
    """A compute by its name: a job's `compute`, where computes are defined, and without effect where none is."""

    def __init__(self, workspace: Any = None, name: str = "cpu-cluster") -> None:
        self.name = name

    @staticmethod
    def create(workspace: Any, name: str, provisioning_configuration: Any = None) -> AmlCompute:
        """The compute of this name; nothing is created (docs/computes.md)."""
        return AmlCompute(workspace, name)

    def wait_for_completion(
        self,
        show_output: bool = False,
        min_node_count: int | None = None,
        timeout_in_minutes: float | None = None,
        is_delete_operation: bool = False,
    ) -> None:
        """Return at once, whatever is given: there is nothing to wait for."""

    def get_status(self) -> SimpleNamespace:
        """A status that says that the compute is there."""
        return SimpleNamespace(provisioning_state="Succeeded", serialize=lambda: {"provisioningState": "Succeeded"})


class AmlCompute(ComputeTarget):
    """v1's `AmlCompute`."""

    @staticmethod
    def provisioning_configuration(**settings: Any) -> dict[str, Any]:
        """The settings, which have no effect: an operator defines computes (docs/computes.md).

        Raises:
            TypeError: v1 has no such setting.
        """
        for name in settings:
            if name not in _PROVISIONING:
                hint = did_you_mean(name, _PROVISIONING)
                raise TypeError(
                    f"provisioning_configuration() got an unexpected keyword argument {name!r}. {hint}".strip()
                )
        return settings


class _Computes(Mapping[str, ComputeTarget]):
    """Computes by name: there is one of each name."""

    def __getitem__(self, name: str) -> ComputeTarget:
        return AmlCompute(None, name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class InteractiveLoginAuthentication(ReportsMissing):
    """A way to sign in to Azure, as v1 has several. None has an effect: the server's token counts."""

    def __init__(self, *_: Any, **__: Any) -> None: ...


AzureCliAuthentication = MsiAuthentication = ServicePrincipalAuthentication = InteractiveLoginAuthentication


class Workspace(ReportsMissing):
    """The one workspace of a server; names of subscription, resource group and workspace don't matter."""

    INSTEAD: ClassVar = {"datasets": "Dataset.get_by_name(workspace, name) has each of them"}

    def __init__(
        self,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        workspace_name: str = "parallelrun",
        auth: Any = None,
        *,
        sku: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.resource_group, self.location, self.subscription_id = workspace_name, "local", "local", "local"
        self.compute_targets: Mapping[str, ComputeTarget] = _Computes()

    @classmethod
    def from_config(cls, path: str | Path | None = None, auth: Any = None) -> Workspace:
        """The workspace; no `config.json` is read."""
        return cls()

    @classmethod
    def get(  # noqa: PLR0917 - v1 has this order
        cls,
        name: str,
        auth: Any = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        cloud: str = "AzureCloud",
    ) -> Workspace:
        """The workspace, by any name."""
        return cls(workspace_name=name)

    def get_default_datastore(self) -> Datastore:
        """The default datastore."""
        return Datastore(self)

    @property
    def datastores(self) -> Mapping[str, Datastore]:
        """The datastores of the server by their names."""
        with Client() as client:
            return {each.name: Datastore(self, each.name) for each in client.datastores.list()}


class OutputData(ReportsMissing):
    """The outputs of a step."""

    def __init__(self, job_id: str, name: str) -> None:
        self._job_id = job_id
        self.name = name
        self.path_on_datastore = f"azureml/{job_id}/{name}"
        """The folder below that of a download in which the files are then, as in v1."""

    def download(
        self, local_path: str | Path = ".", overwrite: bool | None = None, show_progress: bool | None = None
    ) -> int:
        """Download them below a folder, these into `path_on_datastore`; returns the number of files.

        Args:
            overwrite, show_progress: no effect.
        """
        folder = Path(local_path, self.path_on_datastore).parent
        folder.mkdir(parents=True, exist_ok=True)
        with Client() as client:
            return sum(1 for _ in client.outputs.download_all(self._job_id, folder))


class Run(ReportsMissing):
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

    def wait_for_completion(
        self,
        show_output: bool = True,
        timeout_seconds: float | None = None,
        raise_on_error: bool = True,
        wait_post_processing: bool = False,
    ) -> str:
        """Wait for the end of the job, and return its status.

        Args:
            raise_on_error: False: of a job that hasn't completed, the status is returned.
            wait_post_processing: no effect: a job has ended when all is done.

        Raises:
            JobFailed, JobCanceled: it hasn't completed.
            TimedOut: it hasn't ended in time; it continues.
        """

        def show(job: Job) -> None:
            print(f"{self.id}: {job.state}")

        with Client() as client:
            client.jobs.wait(
                self.id,
                timeout_s=timeout_seconds,
                on_progress=show if show_output else None,
                raise_on_failure=raise_on_error,
            )
        return self.get_status()

    def find_step_run(self, name: str) -> list[Run]:
        """The jobs of the steps of this name."""
        with Client() as client:
            job = client.jobs.get(self.id)
        runs = [Run(step.job, step.name) for step in job.steps if step.name == name and step.job]
        return runs or ([self] if not job.steps else [])

    def get_children(
        self,
        recursive: bool = False,
        tags: Any = None,
        properties: Any = None,
        type: str | None = None,
        status: str | None = None,
    ) -> Iterator[Run]:
        """The jobs of all steps, in their order.

        Raises:
            InvalidInput: only some of them are asked for, or those of nested pipelines, too.
        """
        refuse("filter what it returns", tags=tags, properties=properties, type=type, status=status)
        refuse("ask each of those that it returns", recursive=recursive)
        with Client() as client:
            steps = client.jobs.get(self.id).steps
        return iter([Run(step.job, step.name) for step in steps if step.job] or ([] if steps else [self]))

    def get_steps(self) -> Iterator[Run]:
        """The jobs of all steps, in their order."""
        return self.get_children()

    def get_output_data(self, name: str) -> OutputData:
        """Return the outputs of the step."""
        return OutputData(self.id, name)

    def cancel(self) -> None:
        """Cancel the job."""
        with Client() as client:
            client.jobs.cancel(self.id)


PipelineRun = Run


class Experiment(ReportsMissing):
    """The experiment, a name that groups jobs for people."""

    def __init__(self, workspace: Any = None, name: str = "Default") -> None:
        self.workspace, self.name = workspace, name

    def submit(
        self,
        config: Any,
        tags: Mapping[str, str] | None = None,
        *,
        pipeline_parameters: Mapping[str, Any] | None = None,
        continue_on_step_failure: bool = False,
        regenerate_outputs: bool = False,
    ) -> Run:
        """Submit a pipeline, or a step by itself, to which what is said of pipelines does not apply.

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
            job_id = client.jobs.create(config).id
            if tags:
                client.jobs.tag(job_id, tags)
            return Run(job_id)


class Model(ReportsMissing):
    """A model of the server.

    Raises:
        InvalidInput: it is asked for by more than its name and version.
    """

    def __init__(  # noqa: PLR0917 - v1 has this order
        self,
        workspace: Any,
        name: str,
        id: str | None = None,
        tags: Any = None,
        properties: Any = None,
        version: str | int | None = None,
        run_id: str | None = None,
        model_framework: str | None = None,
    ) -> None:
        refuse(
            "name the model and its version",
            id=id, tags=tags, properties=properties, run_id=run_id, model_framework=model_framework,
        )  # fmt: skip
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
        datasets: Any = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        child_paths: Any = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: Any = None,
    ) -> Model:
        """Make a version of a model.

        Args:
            datasets, model_framework, model_framework_version, sample_input_dataset, sample_output_dataset,
                resource_configuration: no effect.

        Raises:
            InvalidInput: only some of the files shall be in it.
        """
        refuse("put the files of the model into a folder of their own", child_paths=child_paths)
        definition: dict[str, Any] = {"name": model_name, "path": str(Path(model_path).absolute())}
        definition |= {"description": description, "tags": tags, "properties": properties}
        with Client() as client:
            made_version = client.models.create({key: value for key, value in definition.items() if value}).version
        return cls(workspace, model_name, version=made_version)


class RunDetails:
    """v1's widget: it prints where the job is."""

    def __init__(self, run_instance: Run) -> None:
        self._run = run_instance

    def show(self, render_lib: Any = None, widget_settings: Any = None) -> None:
        """Print the id of the job and the command that follows it, whatever is given."""
        print(f"job {self._run.id}: parallelrun job open {self._run.id}")
