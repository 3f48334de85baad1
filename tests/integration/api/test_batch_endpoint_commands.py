"""`parallelrun batch-endpoint …`, `batch-deployment …` and the Python client against a real server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from parallelrun import Client, InvalidRequest, NotFound
from parallelrun.cli import main
from parallelrun_core.answers.endpoints import DeploymentInput
from parallelrun_core.folder.job_folder import JobFolder
from tests.integration.api.conftest import ENTRY_SCRIPT, Site
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration

MODEL = """\
type: model
name: blue
endpoint_name: flowers
model: {path: ./model}
code_configuration: {code: ./src, scoring_script: main.py}
environment: {conda_file: ./conda.yml, image: any}
settings: {mini_batch_size: 5, output_action: append_row}
"""
CONDA = "dependencies: [python=3.11, {pip: []}]\n"
PIPELINE = """\
type: pipeline
name: both
endpoint_name: iris
component: ./component.yml
"""
COMPONENT = """\
type: pipeline
inputs:
  images: {type: uri_folder}
  word: {type: string, default: hello}
jobs:
  say:
    type: command
    compute: azureml:cpu
    environment: azureml:any:1
    code: ./src
    inputs: {word: "${{parent.inputs.word}}", images: "${{parent.inputs.images}}"}
    command: echo ${{inputs.word}} ${{inputs.images}}
  again:
    type: command
    compute: azureml:cpu
    environment: azureml:any:1
    inputs: {word: "${{parent.inputs.word}}"}
    command: echo ${{inputs.word}}
"""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder with the files of a user."""
    folder = tmp_path / "documents"
    for name in ("src", "model"):
        (folder / name).mkdir(parents=True)
    (folder / "src" / "main.py").write_text(ENTRY_SCRIPT)
    (folder / "model" / "weights").write_text("1")
    for name, text in {
        "endpoint.yml": "name: flowers\nauth_mode: aad_token\ndescription: Flowers\n",
        "deployment.yml": MODEL, "pipeline.yml": PIPELINE, "component.yml": COMPONENT, "conda.yml": CONDA,
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _server(api: httpx.Client, shared_api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", f"http://127.0.0.1:{shared_api.port}")


def test_from_files_to_a_job_and_back(
    documents: Path, site: Site, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the command line says is in place of what the files say, as in `az ml`.
    assert main(["batch-endpoint", "create", "-f", str(documents / "endpoint.yml"), "-n", "iris"]) == 0
    file = str(documents / "deployment.yml")
    assert main(["batch-deployment", "create", "-f", file, "-e", "iris", "--set-default"]) == 0
    assert capsys.readouterr().out == "iris\nblue\n"
    assert main(["batch-endpoint", "invoke", "iris", "--input", str(site.data), "--mini-batch-size", "3"]) == 0
    record = JobFolder(root, capsys.readouterr().out.strip()).record()
    assert record.spec["inputs"]["data"]["path"] == str(site.data)
    assert record.spec["mini_batch_size"] == 3
    monkeypatch.chdir(documents)
    assert main(["batch-endpoint", "invoke", "iris", "--input", str(site.data), "--output-path", "./made"]) == 0
    assert JobFolder(root, capsys.readouterr().out.strip()).record().spec["output"] == str(documents / "made")
    assert main(["batch-endpoint", "invoke", "iris", "--input", f"a={site.data}", "--input", f"b={site.data}"]) == 0
    assert JobFolder(root, capsys.readouterr().out.strip()).record().spec["input_data"] == ["a", "b"]
    assert main(["batch-endpoint", "list"]) == 0
    assert main(["batch-deployment", "list", "-e", "iris"]) == 0
    assert main(["batch-endpoint", "show", "iris"]) == 0
    assert main(["batch-deployment", "show", "blue", "-e", "iris"]) == 0
    shown = capsys.readouterr().out
    assert "Flowers" in shown
    assert main(["batch-deployment", "delete", "blue", "-e", "iris"]) == 0
    assert main(["batch-endpoint", "delete", "iris"]) == 0
    assert main(["batch-endpoint", "show", "iris"]) != 0


def test_what_is_wrong_is_said_with_its_line(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = documents / "deployment.yml"
    file.write_text(MODEL.replace("mini_batch_size: 5", "mini_batch_size: five"))
    assert main(["batch-deployment", "create", "-f", str(file)]) == 2
    assert f"{file}:7: /settings/mini_batch_size" in capsys.readouterr().err
    file.write_text(file.read_text() + "name: green\n")
    assert main(["batch-deployment", "create", "-f", str(file)]) == 2
    told = capsys.readouterr().err
    assert "the key 'name' is given twice, first on line 2" in told
    assert f"{file}:7: /settings/mini_batch_size" in told
    file.write_text(MODEL + "name: green\n")
    assert main(["batch-deployment", "create", "-f", str(file)]) == 2


def test_a_pipeline_from_python_and_a_text_from_the_command_line(
    documents: Path, site: Site, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client() as client:
        client.batch_endpoints.create({"name": "iris"})
        made = client.batch_deployments.create(documents / "pipeline.yml", set_default=True)
        assert made.inputs["word"] == DeploymentInput(type="string", default="hello")
        given = ["--input", f"images={site.data}", "--input", "word=there"]
        assert main(["batch-endpoint", "invoke", "iris", *given]) == 0
        steps = JobFolder(root, capsys.readouterr().out.strip()).record().spec["steps"]
        assert steps["again"]["job"]["inputs"]["word"]["value"] == "there", "it is a text, and no path"
        job = client.batch_endpoints.invoke("iris", inputs={"images": str(site.data), "word": "there"})
        assert "echo there" in job.spec["steps"]["again"]["job"]["command"] or "there" in str(job.spec)
        with pytest.raises(InvalidRequest, match="this input is required"):
            client.batch_endpoints.invoke("iris", inputs={"word": "there"})
        client.batch_endpoints.delete("iris")
        with pytest.raises(NotFound):
            client.batch_deployments.get("both", "iris")
