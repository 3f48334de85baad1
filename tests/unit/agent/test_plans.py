"""What workers are started with: their environment, and folders of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.workers import models
from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.template_process import TemplateKey
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.spec import JobSpec
from parallelrun_core.tracing.context import SpanContext

NO_SECRETS = ProcessSecrets("")


@pytest.fixture
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlanMaker:
    for name, value in {"PARALLELRUN_REDIS_URL": "redis://:secret@h", "REDIS_URL": "x", "REDIS_PASSWORD": "y"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HARMLESS", "z")
    spec = JobSpec.parse({
        "entry_script": "sub/score.py", "inputs": "/in", "program_arguments": "--a 'b c'",
        "environment_variables": {"MINE": "1", "HARMLESS": "mine"},
    })  # fmt: skip
    job = JobRecord(job_id="job_x", submitted=1.0, code="c" * 64, spec=spec.model_dump(mode="json"))
    settings = AgentSettings(root=tmp_path, work_dir=tmp_path / "work", node="node")
    return PlanMaker(JobFolder(tmp_path, "job_x"), job, spec, settings, GpuPool([]), secrets=NO_SECRETS)


def test_a_plan_has_the_users_settings_and_none_of_our_secrets(plans: PlanMaker, tmp_path: Path) -> None:
    plan = plans.next_plan("node-1")
    assert not [name for name in plan.environment if name.startswith(("PARALLELRUN_", "REDIS_"))]
    assert (plan.environment["MINE"], plan.environment["HARMLESS"]) == ("1", "mine")
    assert plan.environment["AZUREML_RUN_ID"] == "job_x"
    assert plan.config.argv[0] == "sub/score.py"
    assert plan.config.argv[-4:] == ["--a", "b c", "--input_fds_0", "data"]
    assert plan.config.argv[plan.config.argv.index("--output") + 1] == plan.environment["AZUREML_BI_OUTPUT_PATH"]
    assert Path(plan.config.code) == tmp_path / "code" / ("c" * 64)
    assert plan.part == tmp_path / "jobs" / "job_x" / "parts" / "node-1.process000"


@pytest.mark.parametrize(
    "fields, where",
    [
        ({}, "outputs"),
        ({"outputs": {"a": {}}}, "outputs"),
        ({"outputs": {"a": {}, "b": {}}, "append_row_to": "b"}, "outputs/b"),
        ({"outputs": {"a": {}, "b": {"type": "uri_file"}}, "append_row_to": "b"}, "outputs"),
        ({"output_action": "summary_only"}, "outputs"),
        ({"outputs": {"a": {}}, "output_action": "summary_only"}, "outputs/a"),
        ({"outputs": {"a": {"path": "/elsewhere"}}, "output_action": "summary_only"}, "/elsewhere"),
        ({"outputs": {"a": {}, "b": {"type": "uri_file"}}, "output_action": "summary_only"}, "outputs/a"),
        ({"outputs": {"a": {}, "b": {}}, "output_action": "summary_only"}, "outputs"),
        ({"outputs": {"b": {"type": "uri_file"}}, "output_action": "summary_only"}, "outputs"),
    ],
)
def test_the_folder_of_the_output_has_the_rows_or_is_the_only_one(
    fields: dict[str, Any], where: str, tmp_path: Path
) -> None:
    spec = JobSpec.parse({"entry_script": "score.py", "inputs": "/in", **fields})
    job = JobRecord(job_id="job_x", submitted=1.0, code="c" * 64, spec=spec.model_dump(mode="json"))
    settings = AgentSettings(root=tmp_path, work_dir=tmp_path / "work", node="node")
    folder = JobFolder(tmp_path, "job_x")
    plan = PlanMaker(folder, job, spec, settings, GpuPool([]), secrets=NO_SECRETS).next_plan("node-1")
    assert plan.config.output_dir == plan.config.argv[plan.config.argv.index("--output") + 1]
    assert plan.environment["AZUREML_BI_OUTPUT_PATH"] == plan.config.output_dir
    assert plan.environment["AZUREML_BI_OUTPUT_PATH"] == str(folder.path / where)


@pytest.mark.parametrize("passes", [False, True])
def test_a_script_is_told_of_its_own_trace_and_of_no_credentials(
    passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, around = (f"00-{digit * 32}-{digit * 16}-01" for digit in "ab")
    of_agent = {
        "TRACEPARENT": around, "TRACESTATE": "x=y", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=collector", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=collector",
    }  # fmt: skip
    for name, value in of_agent.items():
        monkeypatch.setenv(name, value)
    spec = JobSpec.parse({"entry_script": "score.py", "inputs": "/in"})
    document = spec.model_dump(mode="json")
    job = JobRecord(job_id="job_x", submitted=1.0, code="c" * 64, spec=document, traceparent=given)
    settings = AgentSettings(root=tmp_path, work_dir=tmp_path / "work", node="node", pass_credentials=passes)
    folder = JobFolder(tmp_path, "job_x")
    plan = PlanMaker(folder, job, spec, settings, GpuPool([]), secrets=NO_SECRETS).next_plan("node-1")

    told = SpanContext.parse(plan.environment["TRACEPARENT"])
    assert told is not None
    assert (told.trace_id, told.is_sampled, told.traceparent != given) == ("a" * 32, True, True)
    assert "TRACESTATE" not in plan.environment
    assert plan.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    assert ("api-key=collector" in str(plan.environment)) == passes


def test_no_two_workers_share_a_name(plans: PlanMaker) -> None:
    made = [plans.next_plan("node-1") for _ in range(3)] + [plans.next_plan("node-2")]
    assert [plan.process for plan in made] == ["process000", "process001", "process002", "process003"]
    assert len({plan.part for plan in made} | {plan.working_folder for plan in made}) == 8


def test_workers_have_a_home_that_they_can_write_to(
    plans: PlanMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    home = Path(plans.next_plan("node-1").environment["HOME"])

    assert home == tmp_path / "work" / "job_x" / ".home"
    assert home.stat().st_mode & 0o777 == 0o700


def test_workers_have_their_agents_home_where_they_can_write_to_it(
    plans: PlanMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert plans_for(tmp_path, {"data": "/in"}).next_plan("node-1").environment["HOME"] == str(tmp_path)


def plans_for(tmp_path: Path, inputs: dict[str, Any], *, code: str = "") -> PlanMaker:
    spec = JobSpec.parse({"entry_script": "score.py", "inputs": inputs, "input_data": "data"})
    job = JobRecord(job_id="job_x", submitted=1.0, code="c" * 64, spec=spec.model_dump(mode="json"))
    settings = AgentSettings(root=tmp_path, work_dir=tmp_path / "work", node="node")
    folder = JobFolder(tmp_path, "job_x")
    folder.code(job).mkdir(parents=True)
    (folder.code(job) / "score.py").write_text(code)
    return PlanMaker(folder, job, spec, settings, GpuPool([]), secrets=NO_SECRETS)


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("file", ["w.bin", "MLmodel"])
def test_the_only_model_is_in_a_folder_of_its_own_under_its_name(file: str, is_alone: bool, tmp_path: Path) -> None:
    model = tmp_path / "store" / "weights"
    (model / "part").mkdir(parents=True)
    (model / file).touch()
    (model / "part" / "x").touch()
    if not is_alone:
        (tmp_path / "store" / "other").mkdir()
    plans = plans_for(tmp_path, {"data": "/in", "m": {"path": f"{model}/", "model": "custom_model"}})
    for _ in range(2):
        folder = Path(plans.next_plan("node-1").environment["AZUREML_MODEL_DIR"])
        assert [path.name for path in folder.iterdir()] == ["weights"]
        assert all((folder / "weights" / name).is_file() for name in (file, "part/x"))
        # MLflow wants its models to be where it is told to load them, and not behind a link.
        assert (folder / "weights" / file).resolve().is_relative_to(folder) == (is_alone or file == "MLmodel")
    assert folder.is_relative_to(tmp_path / "work") != is_alone


def test_a_large_model_of_mlflow_is_used_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "store" / "weights"
    model.mkdir(parents=True)
    (model / "MLmodel").write_text("large")
    (tmp_path / "store" / "other").touch()
    monkeypatch.setattr(models, "_MOST_COPIED_BYTES", 4)
    plans = plans_for(tmp_path, {"data": "/in", "m": {"path": str(model), "model": "mlflow_model"}})
    assert plans.next_plan("node-1").environment["AZUREML_MODEL_DIR"] == str(tmp_path / "store")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"a": {"path": "/a"}},
        {"a": {"path": "/a", "model": "custom_model"}, "b": {"path": "/b", "model": "mlflow_model"}},
        {"a": {"path": "s3://bucket/a", "model": "custom_model"}},
    ],
)
def test_without_exactly_one_model_here_there_is_no_such_folder(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZUREML_MODEL_DIR", raising=False)
    plan = plans_for(tmp_path, {"data": "/in", **given}).next_plan("node-1")
    assert "AZUREML_MODEL_DIR" not in plan.environment


def test_a_script_that_asks_for_models_finds_registered_ones(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    for path in ("/models/one", "/models/two"):
        catalog.add("model", "flowers", {"path": path, "type": "custom_model"})
    named = {"path": "/models/one", "model": "custom_model", "asset": "azureml:flowers:1"}
    plan = plans_for(tmp_path, {"data": "/in", "m": named}, code="from azureml.core import Model").next_plan("node-1")
    assert plan.config.job["models"] == [
        {"name": "data", "version": "", "path": "/in"},
        {"name": "flowers", "version": "1", "path": "/models/one"},
        {"name": "m", "version": "", "path": "/models/one"},
        {"name": "flowers", "version": "2", "path": "/models/two"},
        {"name": "flowers", "version": "1", "path": "/models/one"},
    ]  # fmt: skip
    assert plan.config.job["inputs"] == {"data": "/in", "m": "/models/one"}


def test_a_script_that_asks_for_none_has_those_of_its_job(tmp_path: Path) -> None:
    Catalog(tmp_path).add("model", "flowers", {"path": "/models/one", "type": "custom_model"})
    plan = plans_for(tmp_path, {"data": "/in"}, code="print('no models')").next_plan("node-1")
    assert [model["name"] for model in plan.config.job["models"]] == ["data"]


def template_of(folder: Path, job_id: str, owner: str, **fields: Any) -> TemplateKey:
    """The key of the template of a job's first worker."""
    spec = JobSpec.parse({"entry_script": "score.py", "inputs": "/in", **fields})
    record = JobRecord(job_id=job_id, submitted=1.0, code="c" * 64, spec=spec.model_dump(mode="json"), owner=owner)
    settings = AgentSettings(root=folder, work_dir=folder / "work", node="node")
    gpus = GpuPool(["0", "1"])
    plan = PlanMaker(JobFolder(folder, job_id), record, spec, settings, gpus, secrets=NO_SECRETS).next_plan("node-1")
    assert plan.template is not None
    own = {name: plan.environment[name] for name in plan.own_variables}
    assert own == plan.own_variables
    assert {**dict(plan.template.environment), **own} == plan.environment
    return plan.template


def test_only_jobs_of_one_owner_with_equal_workers_share_a_template(tmp_path: Path) -> None:
    key = template_of(tmp_path, "job_a", "anna")
    assert template_of(tmp_path, "job_b", "anna") == key
    assert template_of(tmp_path, "job_b", "bert") != key
    assert template_of(tmp_path, "job_b", "anna", entry_script="other.py") != key


def test_a_template_with_variables_of_a_job_is_that_jobs_own(tmp_path: Path) -> None:
    variables = {"environment_variables": {"TOKEN": "x"}}
    key = template_of(tmp_path, "job_a", "anna", **variables)
    assert key.job_id == "job_a"
    assert ("TOKEN", "x") in key.environment
    assert template_of(tmp_path, "job_b", "anna", **variables) != key


def test_a_template_whose_home_is_a_folder_of_a_job_is_that_jobs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = os.path.expanduser("~")
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed)
    key = template_of(tmp_path, "job_a", "anna")
    assert key.job_id == "job_a"
    assert ("HOME", str(tmp_path / "work" / "job_a" / ".home")) in key.environment
