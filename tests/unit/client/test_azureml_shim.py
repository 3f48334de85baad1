"""What v1's classes are told has its effect, has none because nothing depends on it, or is refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import pytest

from parallelrun import (
    InvalidInput,
    OutputFileDatasetConfig,
    Pipeline,
    PipelineData,
    PipelineParameter,
    PythonScriptStep,
)
from parallelrun.azureml_shim import data, environment, workspace
from parallelrun.builders.v1_inputs import DatasetInput

STORE = data.Datastore(None, "store")
TABLE: Any = data.Dataset.Tabular.from_delimited_files("data")
RUN: Any = workspace.Run("job")
MISSPELT: dict[str, Callable[..., Any]] = {
    "DataPath": data.DataPath,
    "DataReference": data.DataReference,
    "register_azure_blob_container": data.Datastore.register_azure_blob_container,
    "partition_by": TABLE.partition_by,
    "register": TABLE.register,
    "CondaDependencies": environment.CondaDependencies.create,
    "RunConfiguration": environment.RunConfiguration,
    "ComputeTarget": workspace.ComputeTarget(None).wait_for_completion,
    "AmlCompute": workspace.AmlCompute.provisioning_configuration,
    "Workspace": workspace.Workspace,
    "from_config": workspace.Workspace.from_config,
    "Workspace.get": workspace.Workspace.get,
    "download": workspace.OutputData("job", "out").download,
    "wait_for_completion": RUN.wait_for_completion,
    "get_children": RUN.get_children,
    "Experiment": workspace.Experiment,
    "submit": workspace.Experiment(None).submit,
    "Model": workspace.Model,
    "Model.register": workspace.Model.register,
    "RunDetails": workspace.RunDetails(RUN).show,
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_setting_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'show_outptu'"):
        MISSPELT[name](show_outptu=False)


def test_the_settings_of_a_compute_are_those_of_azure() -> None:
    settings = {"vm_size": "STANDARD_D2_V2", "min_nodes": 0, "max_nodes": 4}
    assert workspace.AmlCompute.provisioning_configuration(**settings) == settings
    with pytest.raises(TypeError, match="did you mean 'max_nodes'"):
        workspace.AmlCompute.provisioning_configuration(max_node=4)


REFUSED: dict[str, Callable[[], Any]] = {
    "/endpoint": lambda: STORE.register_azure_blob_container(None, "a", "b", "c", endpoint="core.chinacloudapi.cn"),
    "/mode": lambda: data.DataReference(STORE, "a", mode="upload"),
    "/dataset": lambda: data.DatasetConsumptionConfig("a", PipelineParameter("b", "path")),
    "/path": lambda: data.Dataset.File.from_files([(STORE, "a"), (STORE, "b")]),
    "/partition_as_file_dataset": lambda: TABLE.partition_by(["a"], partition_as_file_dataset=True),
    "/status": lambda: RUN.get_children(status="Failed"),
    "/recursive": lambda: RUN.get_children(recursive=True),
    "/run_id": lambda: workspace.Model(None, "m", run_id="r"),
    "/child_paths": lambda: workspace.Model.register(None, "model", "m", child_paths=["a.bin"]),
}


@pytest.mark.parametrize("pointer", REFUSED)
def test_a_setting_that_would_change_the_result_in_azure_is_refused_by_its_name(pointer: str) -> None:
    with pytest.raises(InvalidInput) as told:
        REFUSED[pointer]()
    assert [problem.pointer for problem in told.value.problems] == [pointer]
    assert told.value.problems[0].hint


def test_what_scripts_chain_on_data_is_an_input_of_the_step_that_names_it() -> None:
    stored = "azureml://datastores/store/paths"
    written = OutputFileDatasetConfig("written")
    chained: list[tuple[DatasetInput, str | None, str]] = [
        (STORE.path("in").as_named_input("a").as_mount("/tmp/a"), f"{stored}/in", "ro_mount"),
        (STORE.path("raw/2024").as_mount(), f"{stored}/raw/2024", "ro_mount"),
        (STORE.as_download("/tmp/b"), f"{stored}/", "download"),
        (data.DataReference(STORE, "c", "old").as_download("/tmp/c", overwrite=True), f"{stored}/old", "download"),
        (data.DataReference(STORE, path_on_datastore="old").as_named_input("d"), f"{stored}/old", "ro_mount"),
        (data.DatasetConsumptionConfig("e", written, "direct"), None, "direct"),
        (data.DatasetConsumptionConfig("f", PipelineData("b").as_dataset()).as_download(), None, "download"),
        (data.DatasetConsumptionConfig("g", PipelineParameter("p", STORE.path("x"))), f"{stored}/x", "ro_mount"),
    ]
    step = PythonScriptStep("a.py", arguments=[each for each, _, _ in chained])

    assert [(each.input.path, each.input.mode) for each in step.wires.inputs] == [each[1:] for each in chained]
    assert [each.name for each in step.wires.inputs] == ["a", "argument_1", "argument_2", "c", "d", "e", "f", "g"]
    assert [each.name for each in step.wires.reads()] == ["written", "b"]
    assert not step.wires.outputs
    pipeline = Pipeline(steps=[PythonScriptStep("a.py", inputs=[chained[-1][0]])])
    for value, problem in ((None, "NoneType is no input"), (written, "written is the output of a step")):
        with pytest.raises(InvalidInput, match=f"/pipeline_parameters/p: {problem}"):
            pipeline.submitted_with({"p": value}).document()


def test_steps_of_a_table_follow_each_other() -> None:
    rows = TABLE.keep_columns(["a", "b"]).drop_columns("b").skip(1).take(10).take_sample(0.5, seed=7)
    assert rows.transformations[1:] == [
        {"keep_columns": ["a", "b"]}, {"drop_columns": "b"}, {"skip": 1}, {"take": 10},
        {"take_random_sample": {"probability": 0.5, "seed": 7}},
    ]  # fmt: skip
    files = data.Dataset.File.from_files("data")
    for no_table in (data.DatasetConsumptionConfig("a", PipelineParameter("b", TABLE)), files):
        with pytest.raises(InvalidInput):
            no_table.take(3)
    for name, remedy in (("filter", "transformations"), ("random_split", "take_sample"), ("to_path", "at the path")):
        with pytest.raises(AttributeError, match=remedy):
            getattr(TABLE, name)


def test_environments_are_changed_as_in_samples() -> None:
    curated = environment.Environment.get(None, "AzureML-Minimal")
    own = curated.clone("own")
    own.python.conda_dependencies = environment.CondaDependencies.create(["six"])
    own.python.conda_dependencies.add_channel("conda-forge")
    run_config = environment.RunConfiguration()
    run_config.environment, run_config.docker.use_docker = own, True
    assert (curated.name, curated.python.conda_dependencies, own.name) == ("AzureML-Minimal", None, "own")
    assert own.document()["conda_file"]["channels"] == ["conda-forge"]
    untyped: Any = own
    with pytest.raises(AttributeError, match=r"ParallelRun has no Environment\.build_local"):
        untyped.build_local(None)


def test_what_is_said_of_data_and_packages_has_its_effect() -> None:
    assert data.DataReference(STORE, "a", "b", mode="download").mode == "download"
    assert data.DataReference(STORE, "a", "b").mode == "ro_mount"
    packages = environment.CondaDependencies.create(["six"], pip_indexurl="https://example.org/simple")
    assert packages.content["dependencies"] == [{"pip": ["--index-url https://example.org/simple", "six"]}]
    assert environment.RunConfiguration(conda_dependencies=packages).environment.document()["conda_file"] == (
        packages.content
    )
    assert workspace.Workspace("subscription", "group", "ours").name == "ours"


class _Jobs:
    """The jobs of a server: one, which has failed."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def wait(self, job_id: str, **options: Any) -> None:
        self.asked.append(options)
        if options["on_progress"]:
            options["on_progress"](self.get(job_id))

    def get(self, job_id: str) -> SimpleNamespace:
        return SimpleNamespace(id=job_id, state="failed")

    def create(self, config: Any) -> SimpleNamespace:
        return SimpleNamespace(id="job")

    def tag(self, job_id: str, tags: Any) -> None:
        self.asked.append({job_id: tags})


class _Client:
    def __init__(self) -> None:
        self.jobs = _Jobs()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> _Jobs:
    client = _Client()
    monkeypatch.setattr(workspace, "Client", lambda: client)
    return client.jobs


def test_a_run_that_has_failed_is_no_error_where_none_is_to_be_raised(
    jobs: _Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert RUN.wait_for_completion(timeout_seconds=60, raise_on_error=False) == "Failed"
    assert capsys.readouterr().out == "job: failed\n"
    RUN.wait_for_completion(show_output=False)
    quiet, loud = ({**asked, "on_progress": asked["on_progress"] is not None} for asked in reversed(jobs.asked))
    assert quiet == {"timeout_s": None, "on_progress": False, "raise_on_failure": True}
    assert loud == {"timeout_s": 60, "on_progress": True, "raise_on_failure": False}


def test_tags_of_a_submission_are_tags_of_its_job(jobs: _Jobs) -> None:
    workspace.Experiment(None).submit(object(), tags={"team": "blue"})
    assert jobs.asked == [{"job": {"team": "blue"}}]
