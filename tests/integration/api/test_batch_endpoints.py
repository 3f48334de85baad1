"""Batch endpoints and their deployments are defined and invoked by requests."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import blobstore_of
from tests.integration.api.conftest import ENTRY_SCRIPT, Site

pytestmark = pytest.mark.integration

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
IRIS = "/v1/batch-endpoints/iris"
BLUE = f"{IRIS}/deployments/blue"


@pytest.fixture(autouse=True)
def none_left(api: httpx.Client) -> Iterator[None]:
    yield
    for each in api.get("/v1/batch-endpoints").json()["items"]:
        api.delete(f"/v1/batch-endpoints/{each['name']}")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("1")
    return folder


def deployment(site: Site, model: Path, **changes: Any) -> dict[str, Any]:
    plain = {
        "$schema": "https://azuremlschemas.azureedge.net/latest/modelBatchDeployment.schema.json",
        "type": "model", "endpoint_name": "iris", "name": "blue", "model": {"path": str(model)},
        "code_configuration": {"code": str(site.code), "scoring_script": "main.py"},
        "compute": "azureml:cpu", "settings": {"mini_batch_size": 5, "output_action": "append_row"},
        "environment": {"image": "python:3.11"},
    }  # fmt: skip
    return plain | changes


@pytest.fixture
def blue(api: httpx.Client, site: Site, model: Path) -> dict[str, Any]:
    """A deployment that is the default of its endpoint."""
    assert api.put(IRIS, json={"description": "Flowers", "auth_mode": "aad_token"}).status_code == 201
    made = api.put(BLUE, params={"default": "true"}, json=deployment(site, model))
    assert made.status_code == 201, made.text
    return dict(made.json())


def test_endpoints_and_deployments_are_shown_changed_and_deleted(
    api: httpx.Client, blue: dict[str, Any], site: Site, model: Path
) -> None:
    assert api.get(BLUE).json() == blue
    assert (blue["type"], blue["spec"]["mini_batch_size"]) == ("model", 5)
    shown = api.get(IRIS).json()
    assert (shown["default_deployment"], shown["deployments"], shown["description"]) == ("blue", ["blue"], "Flowers")
    assert api.put(IRIS, json={}).status_code == 200
    assert api.get(IRIS).json()["default_deployment"] == "blue"
    changed = api.put(BLUE, json=deployment(site, model, settings={"mini_batch_size": 7}))
    assert (changed.status_code, changed.json()["spec"]["mini_batch_size"]) == (200, 7)
    assert [each["name"] for each in api.get(f"{IRIS}/deployments").json()["items"]] == ["blue"]
    assert api.delete(BLUE).status_code == 204
    assert api.get(IRIS).json()["default_deployment"] == ""
    assert api.delete(BLUE).status_code == 404
    assert api.delete(IRIS).status_code == 204
    assert api.get(IRIS).status_code == 404


def test_an_invocation_makes_a_job_over_its_data(
    api: httpx.Client, blue: dict[str, Any], site: Site, root: Path, model: Path
) -> None:
    (site.code / "main.py").unlink()  # a copy is kept
    answer = api.post(f"{IRIS}:invoke", json={"input": str(site.data), "mini_batch_size": 2, "instance_count": 3})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert job["spec"]["inputs"]["data"]["path"] == str(site.data)
    assert job["spec"]["inputs"]["model"]["path"] == str(model)
    assert job["spec"]["input_data"] == ["data"]
    assert (job["spec"]["mini_batch_size"], job["spec"]["instance_count"]) == (2, 3)
    assert "made by the deployment 'blue' of the batch endpoint 'iris'" in job["notes"]
    assert len(job["notes"]) == len(set(job["notes"]))
    folder = JobFolder(root, job["id"])
    assert (folder.code(folder.record()) / "main.py").read_text() == ENTRY_SCRIPT


def test_the_same_key_gives_the_same_job(api: httpx.Client, blue: dict[str, Any], site: Site, key: str) -> None:
    asked = {"inputs": {"images": {"path": str(site.data), "type": "uri_folder"}}}
    first, again = (api.post(f"{IRIS}:invoke", json=asked, headers={"Idempotency-Key": key}) for _ in range(2))
    other = api.post(f"{IRIS}:invoke", json={"input": "/x"}, headers={"Idempotency-Key": key})

    assert first.status_code == again.status_code == 202, first.text
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["spec"]["input_data"] == ["images"]
    assert other.status_code == 422


@pytest.mark.parametrize("sent, kept", [(TRACE, TRACE), ("no trace", "")])
def test_a_job_belongs_to_the_trace_of_whoever_asks_for_it(
    api: httpx.Client, blue: dict[str, Any], site: Site, root: Path, *, sent: str, kept: str
) -> None:
    """A header that is none is no reason to refuse a job."""
    headers = {"traceparent": sent}
    asked = {"inputs": {"images": {"path": str(site.data), "type": "uri_folder"}}}
    for answer in (
        api.post(f"{IRIS}:invoke", json=asked, headers=headers),
        api.post("/v1/jobs", json=site.spec(), headers=headers),
    ):
        assert answer.status_code == 202, answer.text
        assert JobFolder(root, answer.json()["id"]).record().traceparent == kept


def test_what_an_invocation_may_change(
    api: httpx.Client, blue: dict[str, Any], site: Site, tmp_path: Path, model: Path
) -> None:
    asked = {
        "deployment_name": "blue", "input": str(site.data), "input_type": "uri_folder", "job_name": "today",
        "output_path": str(tmp_path / "out"), "output_file_name": "rows.csv", "tags": {"a": "b"},
        "retry_settings": {"max_retries": 1, "timeout": 9}, "environment_variables": {"A": "1"},
    }  # fmt: skip
    job = api.post(f"{IRIS}:invoke", json=asked).json()
    spec = job["spec"]
    assert (job["name"], spec["output"], spec["append_row_file_name"]) == ("today", str(tmp_path / "out"), "rows.csv")
    assert (spec["run_max_try"], spec["run_invocation_timeout"], spec["tags"]) == (2, 9, {"a": "b"})


def test_an_output_of_an_invocation_is_a_folder_or_the_file_with_its_rows(
    api: httpx.Client, blue: dict[str, Any], site: Site, root: Path, tmp_path: Path
) -> None:
    """Also in the default datastore, which is no folder that its user knows."""
    kept, store = blobstore_of(root), "azureml://datastores/workspaceblobstore/paths"
    for sent, folder, file_name in (
        ({"path": str(tmp_path / "out")}, tmp_path / "out", "predictions.csv"),
        ({"path": f"{store}/a/rows.csv", "type": "uri_file"}, kept / "a", "rows.csv"),
        ({"path": f"{store}/a/b/"}, kept / "a" / "b", "predictions.csv"),
    ):
        answer = api.post(f"{IRIS}:invoke", json={"input": str(site.data), "outputs": {"score": sent}})
        assert answer.status_code == 202, answer.text
        spec = answer.json()["spec"]
        assert (Path(spec["output"]), spec["append_row_file_name"]) == (folder, file_name)


def test_code_may_be_sent_with_a_deployment(api: httpx.Client, site: Site, model: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("main.py", ENTRY_SCRIPT)
    api.put(IRIS, json={})
    job = {
        "name": "job", "entry_script": "main.py", "mini_batch_size": 5,
        "inputs": {"data": {"path": "/.parallelrun-later/__parallelrun_input_data__"}, "model": {"path": str(model)}},
        "input_data": ["data"],
    }  # fmt: skip
    made = api.put(BLUE, data={"spec": json.dumps({"job": job})}, files={"code": ("c.zip", packed.getvalue())})
    assert made.status_code == 201, made.text
    answer = api.post(f"{IRIS}:invoke", json={"deployment_name": "blue", "input": str(site.data)})
    assert answer.status_code == 202, answer.text


def test_a_pipeline_gets_its_inputs(api: httpx.Client, site: Site) -> None:
    step = {
        "type": "parallel", "inputs": {"images": "${{parent.inputs.images}}"}, "input_data": "${{inputs.images}}",
        "mini_batch_size": "1", "compute": "azureml:cpu",
        "task": {
            "type": "run_function", "code": str(site.code), "entry_script": "main.py", "environment": "azureml:any:1",
        },
    }  # fmt: skip
    second = {
        "type": "command", "command": "echo ${{inputs.word}}", "environment": "azureml:any:1",
        "inputs": {"word": "${{parent.inputs.word}}"}, "compute": "azureml:cpu",
    }  # fmt: skip
    component = {
        "type": "pipeline", "name": "score", "jobs": {"score": step, "say": second},
        "inputs": {"images": {"type": "uri_folder"}, "word": {"type": "string", "default": "hello"}},
    }  # fmt: skip
    api.put(IRIS, json={})
    made = api.put(BLUE, params={"default": "true"}, json={"type": "pipeline", "component": component})
    assert made.status_code == 201, made.text
    assert made.json()["inputs"] == {
        "images": {"type": "uri_folder", "default": None}, "word": {"type": "string", "default": "hello"},
    }  # fmt: skip
    answer = api.post(f"{IRIS}:invoke", json={"inputs": {"images": {"path": str(site.data)}, "word": "there"}})
    assert answer.status_code == 202, answer.text
    text = json.dumps(answer.json()["spec"])
    assert str(site.data) in text
    assert "there" in text
    assert "__parallelrun_input" not in text
    assert api.post(f"{IRIS}:invoke", json={"input": str(site.data)}).status_code == 202
    refused = api.post(f"{IRIS}:invoke", json={"inputs": {"word": "x", "other": 1}, "mini_batch_size": 1}).json()
    assert [each["pointer"] for each in refused["errors"]] == ["/mini_batch_size", "/inputs/other", "/inputs/images"]


def test_a_pipeline_of_one_step_is_invoked_with_its_own_names(api: httpx.Client, site: Site) -> None:
    step = {
        "type": "parallel", "inputs": {"files": "${{parent.inputs.images}}", "said": "${{parent.inputs.word}}"},
        "outputs": {"rows": "${{parent.outputs.scores}}"}, "input_data": "${{inputs.files}}", "compute": "azureml:cpu",
        "task": {
            "type": "run_function", "code": str(site.code), "entry_script": "main.py", "environment": "azureml:any:1",
            "program_arguments": "--said ${{inputs.said}}", "append_row_to": "${{outputs.rows}}",
        },
    }  # fmt: skip
    pipeline = {
        "type": "pipeline", "jobs": {"score": step}, "outputs": {"scores": {"type": "uri_file"}},
        "inputs": {"images": {"type": "uri_folder", "path": str(site.data)}, "word": "hello"},
    }  # fmt: skip
    api.put(IRIS, json={})
    made = api.put(BLUE, params={"default": "true"}, json={"type": "pipeline", "job_definition": pipeline})
    assert made.status_code == 201, made.text
    rows = site.data.parent / "made" / "rows.txt"
    given = {"inputs": {"word": "there"}, "outputs": {"scores": {"path": str(rows), "type": "uri_file"}}}
    answer = api.post(f"{IRIS}:invoke", json=given)
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    job = spec["steps"]["score"]["job"]
    assert (job["inputs"]["said"]["value"], job["inputs"]["files"]["path"]) == ("there", str(site.data))
    assert spec["outputs"]["scores"]["path"] == str(rows)


@pytest.mark.parametrize(
    "asked, pointer",
    [
        ({}, "/input"),
        ([], ""),
        ({"input": "/no/such/place"}, "/inputs/data/path"),
        ({"input": "/x", "inputs": {"data": "/y"}}, "/input"),
        ({"inputs": {"model": "/x"}}, "/inputs/model"),
        ({"inpt": "/x"}, "/inpt"),
        ({"input": "/x", "mini_batch_size": "many"}, "/mini_batch_size"),
        ({"input": "/x", "outputs": {"a": "/a", "b": "/b"}}, "/outputs"),
    ],
)
def test_what_is_wrong_with_an_invocation_is_said_with_its_place(
    api: httpx.Client, blue: dict[str, Any], asked: Any, pointer: str
) -> None:
    answer = api.post(f"{IRIS}:invoke", json=asked)
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.json()["errors"]]


@pytest.mark.parametrize(
    "changes, pointer",
    [
        ({"name": "green"}, "/name"),
        ({"endpoint_name": "other"}, "/endpoint_name"),
        ({"code_configuration": None}, "/code_configuration"),
        ({"settings": {"mini_batch_size": "x"}}, "/settings/mini_batch_size"),
        ({"model": {"path": "/no/such/model"}}, "/model/path"),
        ({"instance_type": "gpu"}, ""),
    ],
)
def test_what_is_wrong_with_a_deployment_is_said_when_it_is_defined(
    api: httpx.Client, site: Site, model: Path, changes: dict[str, Any], pointer: str
) -> None:
    api.put(IRIS, json={})
    answer = api.put(BLUE, json={**deployment(site, model), **changes})
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.json()["errors"]]
    assert api.get(BLUE).status_code == 404


def test_what_is_not_there_is_said(api: httpx.Client, site: Site, model: Path) -> None:
    assert api.put(BLUE, json=deployment(site, model)).status_code == 404
    assert api.post(f"{IRIS}:invoke", json={"input": str(site.data)}).status_code == 404
    api.put(IRIS, json={})
    nothing = api.post(f"{IRIS}:invoke", json={"input": str(site.data)}).json()
    assert [each["pointer"] for each in nothing["errors"]] == ["/deployment_name"]
    refused = api.put(IRIS, json={"defaults": {"deployment_name": "blue"}}).json()
    assert [each["pointer"] for each in refused["errors"]] == ["/defaults/deployment_name"]
    api.put(BLUE, json=deployment(site, model))
    named = api.post(f"{IRIS}:invoke", json={"input": str(site.data), "deployment_name": "bleu"})
    assert (named.status_code, "did you mean 'blue'?" in named.text) == (404, True)
