"""Assets from end to end: made by the client, named by documents, kept by jobs, and made of outputs."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun import Client, Conflict, InvalidInput, run
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCORE = textwrap.dedent("""
    import os
    def init():
        global model
        (name,) = os.listdir(os.environ["AZUREML_MODEL_DIR"])
        model = open(os.path.join(os.environ["AZUREML_MODEL_DIR"], name, "weights")).read()
    def run(mini_batch):
        return [f"{os.path.basename(path)} {model} {os.environ['FLAVOR']}" for path in mini_batch]
""")
COMPONENT = """
$schema: https://azuremlschemas.azureedge.net/latest/parallelComponent.schema.json
name: score
version: 1
type: parallel
inputs: {data: {type: uri_folder}, model: {type: custom_model}}
outputs: {rows: {type: uri_file}}
input_data: ${{inputs.data}}
mini_batch_size: "1"
task:
  type: run_function
  code: ./src
  entry_script: score.py
  environment: azureml:plain@latest
  append_row_to: ${{outputs.rows}}
"""
PIPELINE = """
type: pipeline
settings: {default_compute: azureml:cpu}
inputs: {digits: {type: uri_folder, path: azureml:digits@latest}}
outputs: {all: {type: uri_folder, name: finals}}
jobs:
  score:
    type: parallel
    component: azureml:score@latest
    inputs: {data: "${{parent.inputs.digits}}", model: {type: custom_model, path: "azureml:credit@latest"}}
  last:
    type: command
    command: cp ${{inputs.rows}} ${{outputs.all}}/all.txt
    environment: azureml:plain:1
    inputs: {rows: {type: uri_file, path: "${{parent.jobs.score.outputs.rows}}"}}
    outputs: {all: "${{parent.outputs.all}}"}
"""
ROWS = ["1.txt heavy plain", "2.txt heavy plain"]
COPY = "def run(mini_batch):\n    return mini_batch\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents, and what they name."""
    for name, text in {
        "digits/1.txt": "1", "digits/2.txt": "2", "model/weights": "heavy", "src/score.py": SCORE,
        "data.yml": "{name: digits, type: uri_folder, path: ./digits}",
        "model.yml": "{name: credit, version: 3, type: custom_model, path: ./model}",
        "environment.yml": "{name: plain, image: any/image, environment_variables: {FLAVOR: plain}}",
        "component.yml": COMPONENT, "pipeline.yml": PIPELINE,
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(api=True) as running:
        yield running


def test_a_pipeline_of_names_runs_on_a_cluster_with_what_they_stood_for(cluster: Cluster, folder: Path) -> None:
    with Client(cluster.api_url) as client:
        kinds = {"data": client.data, "model": client.models, "environment": client.environments}
        for kind, assets in {**kinds, "component": client.components}.items():
            made = assets.create(folder / f"{kind}.yml")
            assert assets.get(made.name).version == made.version
        job = client.jobs.create(folder / "pipeline.yml")
        (folder / "model" / "weights").write_text("light")
        assert client.models.create(folder / "model.yml", changes={"version": 4}).id == "azureml:credit:4"
        client.data.archive("digits")
        client.components.archive("score")
        client.jobs.wait(job.id)
        finals = client.data.get("finals")
        shown = json.dumps(client.jobs.get(job.id).spec)
    assert (Path(finals.path) / "all.txt").read_text().splitlines() == ROWS
    assert "azureml:digits:1" in shown
    assert "azureml:credit:3" in shown
    assert not {"digits@latest", "credit@latest"} & set(shown.split("azureml:"))


def test_a_name_that_nothing_has_is_refused_at_its_field_with_what_there_is(cluster: Cluster, folder: Path) -> None:
    with Client(cluster.api_url) as client:
        client.data.create(folder / "data.yml", changes={"name": "pictures"})
        (folder / "pipeline.yml").write_text(PIPELINE.replace("azureml:digits@latest", "azureml:pictres:1"))
        with pytest.raises(InvalidInput) as refused:
            client.jobs.create(folder / "pipeline.yml")
        problems = {problem.pointer: problem for problem in refused.value.problems}
        assert "did you mean 'pictures'?" in problems["/inputs/digits/path"].hint
        assert f"{folder}/pipeline.yml:4" in problems["/inputs/digits/path"].place


def test_a_version_stays_what_it_is_also_when_the_folder_changes(cluster: Cluster, folder: Path) -> None:
    with Client(cluster.api_url) as client:
        first = client.models.create(folder / "model.yml", changes={"name": "steady"})
        assert client.models.create(folder / "model.yml", changes={"name": "steady"}) == first
        (folder / "model" / "weights").write_text("light")
        assert (Path(first.path) / "weights").read_text() == "heavy"
        with pytest.raises(Conflict, match="a version never changes"):
            client.models.create(folder / "model.yml", changes={"name": "steady"})
        there = client.models.create(folder / "model.yml", changes={"name": "there"}, upload=False)
        assert there.path == str(folder / "model")


def test_a_leader_that_dies_when_it_has_registered_an_output_costs_no_second_version(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with Cluster(slots=1, lease_s=0.8, leader_s=0.8, failpoints=f"finish.before_result=kill:{mark}") as cluster:
        output = {"type": "uri_file", "asset": {"name": "rows"}}
        job = cluster.submit(COPY, inputs=cluster.files(4), outputs={"rows": output}, append_row_to="rows")

        def ended() -> bool:
            cluster.restart_dead()
            return cluster.registry.state(job) is JobState.COMPLETED

        cluster.until(ended, "the job completes", timeout_s=60)
        assert mark.exists()
        result = cluster.result(job)
        (made,) = Catalog(cluster.root).versions("data", "rows")
        assert (made.version, made.content["path"], result.warnings) == ("1", result.output, [])


def test_a_job_that_failed_registers_nothing(cluster: Cluster) -> None:
    script = "def run(mini_batch):\n    raise ValueError('no')\n"
    settings = {"outputs": {"rows": {"asset": {"name": "never"}}}, "run_max_try": 1, "error_threshold": 0}
    job = cluster.submit(script, inputs=cluster.files(4), **settings)
    assert cluster.result(job).state is JobState.FAILED
    assert Catalog(cluster.root).names("data", with_archived=True).count("never") == 0


def test_a_run_on_this_machine_uses_this_users_assets_and_the_site_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parallelrun.embedded.assets import OwnAssets

    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for kind in ("data", "environment", "component"):
        OwnAssets(kind).create(folder / f"{kind}.yml")
    (folder / "pipeline.yml").write_text(PIPELINE.replace("azureml:credit@latest", "azureml:theirs:7"))
    (folder / "parallelrun-site.yml").write_text("models: {azureml:theirs: ./model}\n")
    result = run(folder / "pipeline.yml", output=folder / "out", progress=False)
    assert (result.outputs["all"] / "all.txt").read_text().splitlines() == ROWS
    assert result.registered == ("azureml:finals:1",)
    os.rename(folder / "out", folder / "gone")
    assert (Path(OwnAssets("data").get("finals").path) / "all.txt").read_text().splitlines() == ROWS


def test_what_a_run_writes_to_the_default_datastore_is_there_for_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    (folder / "parallelrun-site.yml").write_text("images: {any/*: {image: of-the-node}}\n")
    kept = "azureml://datastores/workspaceblobstore/paths/kept"
    write = {
        "type": "command", "command": "echo 5 > ${{outputs.rows}}/rows.txt", "environment": {"image": "any/image"},
        "outputs": {"rows": {"type": "uri_folder", "path": kept}},
    }  # fmt: skip
    copy = {
        **write, "command": "cp ${{inputs.rows}} ${{outputs.copy}}",
        "inputs": {"rows": {"type": "uri_file", "path": f"{kept}/rows.txt"}}, "outputs": {"copy": {"type": "uri_file"}},
    }  # fmt: skip
    for name, document in {"write": write, "copy": copy}.items():
        (folder / f"{name}.yml").write_text(json.dumps(document))
        result = run(folder / f"{name}.yml", output=folder / name, progress=False)
    assert result.outputs["copy"].read_text() == "5\n"
    assert not (folder / "write" / ".parallelrun" / "cluster").exists()
