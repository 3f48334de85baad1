"""`Run`: what a script logs and asks through `Run.get_context()`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from parallelrun_worker.script_api.metrics import MetricLog
from parallelrun_worker.shims.dataset import Dataset
from parallelrun_worker.shims.job import about_job, file_called, job_id, not_here
from parallelrun_worker.shims.workspace import Workspace


class Run:
    """The job of this process. `Run.get_context()` gives it; outside of a job, one that only remembers metrics."""

    def __init__(self, experiment: Any = None, run_id: str = "", **_: Any) -> None:
        self.id = run_id or job_id()
        self.run_id = self.id
        self.number = 1
        self.experiment = experiment or Experiment(Workspace(), str(about_job().get("experiment") or "parallelrun"))
        self.name = str(about_job().get("name") or self.id)
        self.display_name = self.name
        self.tags: dict[str, Any] = dict(about_job().get("tags") or {})
        self.properties: dict[str, Any] = {}

    @staticmethod
    def get_context(allow_offline: bool = True, **_: Any) -> Run:
        """The job that this process works for.

        Raises:
            RuntimeError: it works for none, and `allow_offline` is false.
        """
        if job_id():
            return Run()
        if not allow_offline:
            raise RuntimeError("This process works for no job, and allow_offline is false.")
        return _OfflineRun()

    @property
    def parent(self) -> Run | None:
        """The job of the pipeline; None: this one is no step."""
        parent = about_job().get("parent")
        return Run(self.experiment, parent) if parent else None

    @property
    def input_datasets(self) -> Inputs:
        """The inputs of the job by name: a `Dataset` for each path, the value of each literal."""
        return Inputs(about_job().get("inputs") or {})

    @property
    def output_datasets(self) -> dict[str, Any]:
        """None: a script gets the paths of outputs as arguments."""
        return {}

    # Metrics

    def log(self, name: str, value: Any, description: str = "", step: int | None = None) -> None:
        """Record a number or a text."""
        MetricLog.of_this_process().log(name, value, step)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        """Record a list."""
        MetricLog.of_this_process().log(name, list(value))

    def log_row(self, name: str, description: str | None = None, **values: Any) -> None:
        """Record a row with these columns."""
        MetricLog.of_this_process().log(name, values)

    def log_table(self, name: str, value: Mapping[str, Any], description: str = "") -> None:
        """Record columns of the same length."""
        MetricLog.of_this_process().log(name, dict(value))

    def log_image(self, name: str, path: str | None = None, plot: Any = None, description: str = "") -> None:
        """Put an image, or a plot of matplotlib, among the job's logs."""
        if plot is not None:
            plot.savefig(file_called(f"logs/{name}.png"))
        elif path is not None:
            self.upload_file(f"logs/{name}{os.path.splitext(path)[1]}", path)

    def log_confusion_matrix(self, name: str, value: Any, description: str = "") -> None:
        """Record what was given."""
        MetricLog.of_this_process().log(name, value)

    log_accuracy_table = log_residuals = log_predictions = log_confusion_matrix

    def get_metrics(self, name: str | None = None, **_: Any) -> dict[str, Any]:
        """Return what this process has logged so far; `parallelrun job metrics` has that of all."""
        logged = MetricLog.of_this_process().logged
        return {each: value for each, value in logged.items() if name in (None, each)}

    def flush(self, timeout_seconds: float = 300) -> None:
        """Put metrics on the disk."""
        MetricLog.of_this_process().close()

    # Files

    def upload_file(self, name: str, path_or_stream: Any, **_: Any) -> None:
        """Put a file into the folder of the job's output, or below `logs/` among its logs; one that is there is
        replaced."""
        target = file_called(name)
        beside = f"{target}.{os.getpid()}.new"
        if hasattr(path_or_stream, "read"):
            data = path_or_stream.read()
            with open(beside, "wb") as file:
                file.write(data.encode() if isinstance(data, str) else data)
        elif os.path.realpath(path_or_stream) == os.path.realpath(target):
            return
        else:
            shutil.copyfile(path_or_stream, beside)
        os.replace(beside, target)

    def upload_folder(self, name: str, path: str, **_: Any) -> None:
        """Put all files of a folder there."""
        for folder, _folders, files in os.walk(path):
            for each in files:
                inside = os.path.join(os.path.relpath(folder, path), each)
                self.upload_file(os.path.normpath(os.path.join(name, inside)), os.path.join(folder, each))

    # What is said of the job

    def tag(self, key: str, value: Any = None) -> None:
        """Remember a tag in this process; those of the job are set when it is submitted."""
        self.tags[key] = value

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        """Remember tags in this process."""
        self.tags.update(tags)

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Remember properties in this process."""
        self.properties.update(properties)

    def get_tags(self) -> dict[str, Any]:
        return dict(self.tags)

    def get_properties(self) -> dict[str, Any]:
        return dict(self.properties)

    def get_status(self) -> str:
        return "Running"

    def get_details(self) -> dict[str, Any]:
        """Return what is known of the job in its own process."""
        return {"runId": self.id, "status": self.get_status(), "properties": self.get_properties()}

    def get_portal_url(self) -> str:
        return ""

    def get_children(self, **_: Any) -> Iterator[Run]:
        """None."""
        return iter(())

    def start(self) -> None:
        """Nothing: it runs."""

    def complete(self, **_: Any) -> None:
        """Nothing: the job ends when all of its mini-batches are decided."""

    def wait_for_completion(self, **_: Any) -> dict[str, Any]:
        raise not_here("wait_for_completion inside of its own job")

    def fail(self, error_details: Any = None, **_: Any) -> None:
        """Fail the mini-batch.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"The script has called Run.fail(): {error_details}")

    def register_model(self, model_name: str, **_: Any) -> None:
        raise not_here("Run.register_model", "write it to an output, and register that: `parallelrun model create`")

    def child_run(self, name: str | None = None, **_: Any) -> Run:
        """This one: it has the metrics of all of its processes."""
        return self

    def get_secret(self, name: str) -> str:
        """A secret of the job: the environment variable of that name.

        Raises:
            KeyError: the job has none of that name.
        """
        return os.environ[name]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def __repr__(self) -> str:
        return f"Run(Experiment: {self.experiment.name}, Id: {self.id})"


class Experiment:
    """The experiment that a job belongs to: a name."""

    def __init__(self, workspace: Any = None, name: str = "", **_: Any) -> None:
        self.workspace = workspace or Workspace()
        self.name = name

    def start_logging(self, **_: Any) -> Run:
        """The job that this process works for."""
        return Run.get_context()

    def submit(self, *_: Any, **_named: Any) -> Any:
        raise not_here("Experiment.submit", "submit jobs with parallelrun.Client().jobs.create(…)")


class _OfflineRun(Run):
    """The one outside of a job."""

    def __init__(self, *_: Any, **_named: Any) -> None:
        super().__init__(run_id=f"OfflineRun_{os.getpid()}")


class Inputs(dict):  # type: ignore[type-arg]
    """Inputs by name, in any letter case."""

    def __missing__(self, name: str) -> Any:
        for each in self:
            if each.lower() == str(name).lower():
                return self[each]
        raise KeyError(f"The job has no input {name!r}; it has: {', '.join(self) or 'none'}.")

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return Dataset(name, value) if isinstance(value, str) else value


def get_run(experiment: Any, run_id: str, **_: Any) -> Run:
    raise not_here("azureml.core.get_run", "ask the server: parallelrun.Client().jobs.get(id)")
