"""Batch deployments become jobs with the defaults of the reference (§3.9); what they lack is said with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from parallelrun_core.azure.forms import is_deployment
from parallelrun_core.azure.invocation import invoked
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import Input

NEWER: dict[str, Any] = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/modelBatchDeployment.schema.json",
    "name": "blue", "endpoint_name": "flowers", "description": "petals", "type": "model", "tags": {"a": 1},
    "model": {"path": "model"},
    "code_configuration": {"code": "src", "scoring_script": "score.py"},
    "environment": {"conda_file": {"dependencies": ["pip"]}, "image": "any"},
    "compute": "azureml:cpus",
    "resources": {"instance_count": 2},
    "settings": {
        "max_concurrency_per_instance": 3, "mini_batch_size": 5, "output_action": "append_row",
        "output_file_name": "petals.csv", "retry_settings": {"max_retries": 1, "timeout": 300},
        "error_threshold": 7, "logging_level": "info", "environment_variables": {"MODE": "fast"},
    },
}  # fmt: skip
LEAST: dict[str, Any] = {
    "endpoint_name": "flowers",
    "model": "azureml:/models/flowers",
    "code_configuration": {"scoring_script": "score.py"},
}


def job(document: dict[str, Any], folder: Path | None = Path("/here"), **given: Any) -> JobSpec:
    return read_job(invoked(document, **({"inputs": {"data": "pictures"}} | given)), folder=folder).job


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as told:
        read_job(document, folder=Path("/here"))
    return {problem.pointer: problem.message for problem in told.value.problems}


def test_a_deployment_is_a_job_over_the_data_of_an_invocation() -> None:
    spec = job(NEWER)
    assert (spec.name, spec.description, spec.tags) == ("blue", "petals", {"a": "1"})
    assert (spec.code, spec.entry_script) == ("/here/src", "score.py")
    assert spec.inputs["data"] == Input(path="/here/pictures", hidden_files="skip", litter_files="warn")
    assert spec.inputs["model"] == Input(path="/here/model", model="custom_model")
    assert spec.input_data == ("data",)
    assert (spec.max_concurrency_per_instance, spec.instance_count, spec.mini_batch_size) == (3, 2, 5)
    assert (spec.output_action, spec.append_row_file_name, spec.append_row_to) == ("append_row", "petals.csv", "")
    assert (spec.run_max_try, spec.run_invocation_timeout, spec.error_threshold) == (2, 300, 7)
    assert (spec.logging_level, spec.environment_variables) == ("INFO", {"MODE": "fast"})


def test_earlier_documents_have_the_settings_beside_them() -> None:
    settings = NEWER["settings"]
    older = {name: value for name, value in NEWER.items() if name not in ("settings", "type")} | settings
    assert job(older) == job(NEWER)


def test_what_is_not_set_is_as_in_the_reference() -> None:
    spec = job(LEAST)
    assert (spec.max_concurrency_per_instance, spec.instance_count, spec.mini_batch_size) == (1, 1, 10)
    assert (spec.output_action, spec.append_row_file_name) == ("append_row", "predictions.csv")
    assert (spec.run_max_try, spec.run_invocation_timeout, spec.error_threshold) == (4, 30, -1)
    assert (spec.code, spec.inputs["model"]) == ("/here", Input(path="/models/flowers", model="custom_model"))


@pytest.mark.parametrize("spelled", ["summary_only", "SummaryOnly", "SUMMARY_ONLY"])
def test_the_output_action_in_any_spelling(spelled: str) -> None:
    assert job(LEAST | {"output_action": spelled}).output_action == "summary_only"


def test_an_invocation_may_change_settings_and_the_place_of_the_output() -> None:
    overrides = {"instance_count": 5, "mini_batch_size": 1, "output_file_name": "today.csv"}
    spec = job(NEWER, outputs={"score": {"path": "/out", "type": "uri_folder"}}, overrides=overrides)
    assert (spec.instance_count, spec.mini_batch_size, spec.append_row_file_name) == (5, 1, "today.csv")
    assert (spec.output, spec.append_row_to) == ("/out", "")
    given = {"first": {"path": "/a", "type": "uri_file"}, "second": {"path": "/b"}}
    assert job(NEWER, inputs=given).input_data == ("first", "second")


@pytest.mark.parametrize(
    "change, pointer, message",
    [
        ({"inputs": None}, "/inputs", "no data of its own"),
        ({"code_configuration": None}, "/code_configuration", "needs a scoring script"),
        ({"code_configuration": {"code": "."}}, "/code_configuration/scoring_script", "required"),
        ({"inputs": {"count": 5}}, "/inputs/count", "files and tables only"),
        ({"inputs": {"model": {"path": "/x"}}}, "/inputs/model", "the deployment's own model"),
        ({"outputs": {"a": {"path": "/a"}, "b": {"path": "/b"}}}, "/outputs", "one folder for its output, not 2: a, b"),
        ({"settings": {"mini_batch_size": 0}}, "/settings/mini_batch_size", "greater than or equal to 1"),
        ({"settings": {"output_file_name": "../x"}}, "/settings/output_file_name", "plain file name"),
        ({"retry_settings": {"timeout": 0}}, "/retry_settings/timeout", "greater than 0"),
        ({"minibatch": 1}, "/minibatch", "unknown field"),
        ({"liveness_probe": {}}, "", "online deployment"),
        ({"auth_mode": "aad_token"}, "", "an endpoint has nothing to run"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Any], pointer: str, message: str) -> None:
    assert message in problems(LEAST | {"inputs": {"data": {"path": "/x"}}} | change)[pointer]


def test_no_job_of_another_kind_is_taken_for_a_deployment() -> None:
    for document in ({"type": "pipeline", "jobs": {}}, {"type": "parallel"}, {"entry_script": "a.py"}, {}):
        assert not is_deployment(document)
    assert all(map(is_deployment, (NEWER, LEAST, {"type": "Model"}, {"auth_mode": "key"})))


def test_an_mlflow_model_needs_no_scoring_script() -> None:
    deployment = {name: value for name, value in LEAST.items() if name != "code_configuration"}
    spec = job(deployment | {"model": {"path": "model", "type": "mlflow_model"}})
    assert (Path(spec.code) / spec.entry_script).is_file()
    assert (spec.append_row_separator, spec.inputs["model"]) == (",", Input(path="/here/model", model="mlflow_model"))


STEP = {
    "type": "parallel", "inputs": {"files": "${{parent.inputs.raw}}"}, "input_data": "${{inputs.files}}",
    "outputs": {"scores": "${{parent.outputs.scores}}"}, "mini_batch_size": "${{parent.inputs.size}}",
    "task": {
        "type": "run_function", "code": "./src", "entry_script": "score.py", "environment": "azureml:any@latest",
        "append_row_to": "${{outputs.scores}}",
    },
}  # fmt: skip
PIPELINE = {
    "type": "pipeline", "outputs": {"scores": {"type": "uri_folder"}},
    "inputs": {"raw": {"type": "uri_folder"}, "size": {"type": "string", "default": "3"}},
    "jobs": {"count": {"type": "command", "command": "wc", "environment": "azureml:any@latest"}, "score": STEP},
}  # fmt: skip


@pytest.mark.parametrize("where", ["component", "job_definition"])
@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_deployment_of_a_pipeline_is_that_pipeline(where: str, in_a_file: bool, tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "both.yml").write_text(yaml.safe_dump(PIPELINE))
    deployment = {
        "type": "pipeline", "name": "nightly", "endpoint_name": "flowers", "settings": {"force_rerun": True},
        "tags": {"team": "a"}, where: "./steps/both.yml" if in_a_file else PIPELINE,
    }  # fmt: skip
    given = invoked(deployment, inputs={"raw": {"path": "/raw"}, "size": "7"}, outputs={"scores": {"path": "/out"}})
    pipeline = read_job(given, folder=tmp_path).pipeline
    assert pipeline is not None
    assert (pipeline.name, pipeline.force_rerun, set(pipeline.steps)) == ("nightly", True, {"count", "score"})
    assert pipeline.tags == {"team": "a"}
    score = pipeline.steps["score"].job
    assert (score["inputs"]["files"]["path"], score["mini_batch_size"]) == ("/raw", 7)
    assert score["code"] == str(tmp_path / ("steps/src" if in_a_file else "src"))


def test_a_deployment_of_a_pipeline_needs_its_steps() -> None:
    deployment = {"type": "pipeline", "endpoint_name": "x"}
    assert "set either component or job_definition" in problems(deployment)["/component"]
    assert "can't be deployed" in problems(deployment | {"job_definition": "azureml:some_job"})["/job_definition"]
