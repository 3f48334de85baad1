"""What a name in a job's document stands for: in the catalog, and in the site file."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from parallelrun.job_file.reading import read_job_file
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.kinds.component import ComponentAsset
from parallelrun_core.assets.resolving import names_in
from parallelrun_core.assets.site import Site, read_site
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.names.assets import Asset
from parallelrun_core.spec import Input, JobSpec
from parallelrun_core.spec.pipeline_steps import MAX_STEPS_READ

PARALLEL: dict[str, Any] = {
    "type": "parallel",
    "inputs": {"data": {"type": "uri_folder", "path": "azureml:images:1"}},
    "outputs": {},
    "input_data": "${{inputs.data}}",
    "resources": {"instance_count": 1},
    "mini_batch_size": "1",
    "task": {"type": "run_function", "code": "/code", "entry_script": "score.py", "environment": "azureml:sk@latest"},
}
IN_WORKSPACE = "subscriptions/s/resourcegroups/g/workspaces/w"
LISTED: dict[str, Any] = {"hidden_files": "skip", "litter_files": "warn"}
"""What a document of Azure ML says of the files that are cut."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "root")
    catalog.add("data", "images", {"type": "uri_folder", "path": "/data/images"}, version="1")
    catalog.add("model", "credit", {"type": "mlflow_model", "path": "/models/credit"}, version="3")
    catalog.add("environment", "sk", {"conda_file": {"dependencies": ["python=3.11"]}}, version="2")
    component = {**PARALLEL, "name": "score", "inputs": {"data": {"type": "path", "mode": "rw_mount"}}}
    catalog.add("component", "score", {"type": "parallel", "document": component}, version="5")
    return catalog


def read(document: dict[str, Any], catalog: Catalog, site: Site | None = None) -> JobSpec:
    return read_job(document, names=names_in(catalog, lambda: site or Site())).job


def test_names_stand_for_what_the_catalog_has_and_the_job_keeps_their_versions(catalog: Catalog) -> None:
    document = {
        **PARALLEL,
        "inputs": {**PARALLEL["inputs"], "model": {"type": "custom_model", "path": "azureml:credit@latest"}},
    }
    reading = read_job(document, names=names_in(catalog, Site))
    assert reading.spec.inputs["data"] == Input(path="/data/images", asset="azureml:images:1", **LISTED)
    assert reading.spec.inputs["model"] == Input(path="/models/credit", asset="azureml:credit:3", model="custom_model")
    assert reading.job.environment.name == "sk:2"
    assert reading.job.environment.python == "3.11"
    assert "the environment is azureml:sk:2" in " ".join(map(str, reading.notes))
    deployment = {"endpoint_name": "e", "model": "azureml:credit@latest", "inputs": {"data": "azureml:images:1"}}
    scored = read_job(deployment, names=names_in(catalog, Site))  # a registered type needs no scoring script
    assert scored.job.inputs["model"] == Input(path="/models/credit", asset="azureml:credit:3", model="mlflow_model")
    assert "must have mlflow" in " ".join(map(str, scored.notes))


def test_a_registered_component_runs_in_a_pipeline(catalog: Catalog) -> None:
    step = {"type": "parallel", "component": "azureml:score@latest", "inputs": {"data": "${{parent.inputs.raw}}"}}
    document = {
        "type": "pipeline", "settings": {"default_compute": "azureml:local"}, "jobs": {"one": step},
        "inputs": {"raw": {"type": "uri_folder", "path": "azureml:images"}},
    }  # fmt: skip
    reading = read_job(document, names=names_in(catalog, Site))
    assert reading.spec.inputs["data"] == Input(path="/data/images", asset="azureml:images:1", **LISTED)
    assert "azureml:score:5" in " ".join(map(str, reading.notes))
    assert "rw_mount is read as ro_mount" in " ".join(map(str, reading.notes))


@pytest.mark.parametrize("inner", ["itself", "the next one", "nothing"])
def test_components_without_an_end_are_looked_up_only_so_often(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    for depth in range(8):
        name = f"c{depth}"
        below = name if inner == "itself" else f"c{depth + 1}"
        jobs: dict[str, Any] = {f"step{n}": {"component": f"azureml:{below}:1"} for n in range(40)}
        if depth >= 5 and inner != "itself":
            jobs = {"only": {"type": "command", "command": "true", "environment": "azureml:e@latest"}}
            jobs = jobs if inner == "the next one" else {}
        document = {"type": "pipeline", "name": name, "jobs": jobs}
        catalog.add("component", name, {"type": "pipeline", "document": document}, version="1")
    names, looked_up = names_in(catalog, Site), 0
    look_up = names.asset

    def counted(kind: str, text: str) -> Asset:
        nonlocal looked_up
        looked_up += 1
        assert looked_up <= MAX_STEPS_READ + 1
        return look_up(kind, text)

    monkeypatch.setattr(names, "asset", counted)
    with pytest.raises(InvalidInput) as refused:
        read_job({"type": "pipeline", "jobs": {"one": {"component": "azureml:c0:1"}}}, names=names)
    (problem,) = refused.value.problems
    said = "pipelines are nested more than 8 deep" if inner == "itself" else "it has more than 4,000 steps"
    assert said in problem.message
    assert problem.pointer.startswith("/jobs/one/")


@pytest.mark.parametrize("field", ["description", "command"])
def test_a_large_component_to_which_many_refer_takes_memory_only_so_far(tmp_path: Path, field: str) -> None:
    large = {"type": "command", "command": "true", "environment": "azureml:e@latest", field: "x" * 900_000}
    (tmp_path / "large.yml").write_text(json.dumps(large))
    jobs = {f"step{number}": {"type": "command", "component": "./large.yml"} for number in range(1000)}
    (file := tmp_path / "pipeline.yml").write_text(json.dumps({"type": "pipeline", "jobs": jobs}))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="more than 32 MiB"):
            read_job_file(file)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_our_own_form_may_have_names_too(catalog: Catalog) -> None:
    document = {"entry_script": "a.py", "code": "/code", "inputs": "azureml:images:1", "environment": "azureml:sk:2"}
    spec = read(document, catalog)
    own: dict[str, Any] = {"hidden_files": "skip", "litter_files": "skip"}
    assert spec.inputs["data"] == Input(path="/data/images", asset="azureml:images:1", **own)
    assert spec.environment.python == "3.11"
    v1 = {
        "parallel_run_config": {
            "entry_script": "a.py", "error_threshold": 1, "output_action": "summary_only", "node_count": 1,
            "compute_target": "c", "environment": "azureml:sk:2", "source_directory": "/code",
        },
        "inputs": ["azureml:images:1"], "side_inputs": {"model": "azureml:credit:3"},
    }  # fmt: skip
    assert [given.asset for _, given in read(v1, catalog).input_paths()] == ["azureml:images:1", "azureml:credit:3"]


@pytest.mark.parametrize(
    "path, message, hint",
    [
        ("azureml:image:1", "no data of this name", "did you mean 'images'?"),
        ("azureml:images:7", "no such version", "it has 1"),
        ("azureml:images@stable", "no such label", "it has latest"),
        ("azureml://registries/r/data/x/versions/1", "can't be asked", "site file"),
    ],
)
def test_an_unknown_name_is_refused_at_its_field(catalog: Catalog, path: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read({**PARALLEL, "inputs": {"data": {"path": path}}}, catalog)
    (problem,) = error.value.problems
    assert problem.pointer == "/inputs/data/path"
    assert message in problem.message
    assert hint in problem.hint


def test_an_environment_of_azure_ml_means_the_nodes_own_python(catalog: Catalog) -> None:
    task = {**PARALLEL["task"], "environment": "azureml:AzureML-sklearn-1.5@latest"}
    assert not read({**PARALLEL, "task": task}, catalog).environment.is_own
    with pytest.raises(InvalidInput, match=r"/task/environment: '9': the environment 'sk' has no such version"):
        read({**PARALLEL, "task": {**task, "environment": "azureml:sk:9"}}, catalog)


SITE = """\
datastores:
  workspaceblobstore: /srv/blobs
locations:
  https://example.blob.core.windows.net/public/: /srv/public/
data:
  azureml:diabetes: /srv/diabetes
  azureml:pictures:1: azureml:images:1
  azureml://registries/azureml/data/*: /srv/registry
models:
  azureml:theirs:2: azureml:credit:3
environments:
  azureml://registries/azureml/environments/sklearn-*: azureml:sk@latest
  azureml:inline: {conda_file: conda.yml}
components:
  azureml://registries/azureml/components/batch: batch.yml
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "site.yml").write_text(SITE)
    (tmp_path / "conda.yml").write_text("dependencies: [python=3.12]\n")
    (tmp_path / "batch.yml").write_text(
        "name: batch\ntype: parallel\ninputs: {data: {type: uri_folder}}\ninput_data: ${{inputs.data}}\n"
        "mini_batch_size: '1'\ntask: {type: run_function, code: src, entry_script: a.py, environment: azureml:sk:2}\n"
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def run(mini_batch): return mini_batch\n")
    return read_site(tmp_path / "site.yml")


@pytest.mark.parametrize(
    "given, path",
    [
        ("azureml://datastores/workspaceblobstore/paths/a/b", "/srv/blobs/a/b"),
        (f"azureml://{IN_WORKSPACE}/datastores/workspaceblobstore/paths/a", "/srv/blobs/a"),
        ("https://example.blob.core.windows.net/public/x/y.csv", "/srv/public/x/y.csv"),
        ("azureml:diabetes:4", "/srv/diabetes"),
        ("azureml:pictures:1", "/data/images"),
        ("azureml://registries/azureml/data/x/versions/1", "/srv/registry"),
    ],
)  # fmt: skip
def test_the_site_file_says_what_foreign_names_and_places_are_here(
    catalog: Catalog, site: Site, given: str, path: str
) -> None:
    spec = read({**PARALLEL, "inputs": {"data": {"type": "uri_folder", "path": given}}}, catalog, site)
    assert dict(spec.input_paths())["data"].path == path


def test_no_path_leaves_its_datastore(catalog: Catalog, site: Site) -> None:
    path = "azureml://datastores/workspaceblobstore/paths/a/../../jobs"
    with pytest.raises(InvalidInput, match=r"/inputs/data/path: 'a/\.\./\.\./jobs' is not a path below its folder"):
        read({**PARALLEL, "inputs": {"data": {"type": "uri_folder", "path": path}}}, catalog, site)
    command = {"type": "command", "command": "ls > ${{outputs.all}}/all", "environment": "azureml:sk:2"}
    outputs = {"all": {"type": "uri_folder", "path": path}}
    with pytest.raises(InvalidInput, match=r"/outputs/all/path: .* is not a path below its folder"):
        read({**command, "outputs": outputs}, catalog, site)
    own = {"entry_script": "a.py", "code": "/src", "inputs": path}
    with pytest.raises(InvalidInput, match=r"/inputs/data/path: .* is not a path below its folder"):
        read(own, catalog, site)


def test_an_output_that_is_relative_to_a_folder_of_elsewhere_is_among_the_jobs_own(catalog: Catalog) -> None:
    command = {"type": "command", "command": "ls > ${{outputs.all}}", "environment": "azureml:sk:2"}
    document = {**command, "outputs": {"all": {"type": "uri_file", "path": "./here/all.txt"}}}
    reading = read_job(document, names=names_in(catalog, Site))
    assert (reading.job.outputs["all"].path, reading.job.outputs["all"].file_name) == ("", "all.txt")
    assert (
        "goes to the job's own outputs" in {note.pointer: note.message for note in reading.notes}["/outputs/all/path"]
    )


def test_the_site_file_has_environments_and_components_too(catalog: Catalog, site: Site) -> None:
    names = "azureml://registries/azureml/environments/sklearn-1.5/versions/3"
    spec = read({**PARALLEL, "task": {**PARALLEL["task"], "environment": names}}, catalog, site)
    assert spec.environment.python == "3.11"
    spec = read({**PARALLEL, "task": {**PARALLEL["task"], "environment": "azureml:inline@latest"}}, catalog, site)
    assert spec.environment.python == "3.12"
    step = {"type": "parallel", "component": "azureml://registries/azureml/components/batch/versions/1"}
    document = {
        "type": "pipeline", "settings": {"default_compute": "azureml:local"},
        "jobs": {"one": {**step, "inputs": {"data": {"path": "/x"}}}},
    }  # fmt: skip
    assert read(document, catalog, site).code.startswith("azureml:code/")


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("dta: {}\n", 1, "unknown key"),
        ("datastores:\n  a: 1\n", 2, "must be a folder"),
        ("data:\n  images: /x\n", 2, "not a name of such an asset"),
        ("models:\n  azureml://registries/r/data/x: /x\n", 2, "not a name of such an asset"),
        ("environments:\n  azureml:x: azureml://registries/r/environments/y\n", 2, "can't stand for anything"),
        ("locations: [a]\n", 1, "must be a mapping"),
        ("components:\n  azureml:x: s3://b/x.yml\n", 2, "or a file"),
    ],
)
def test_a_wrong_site_file_is_refused_with_the_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    (tmp_path / "site.yml").write_text(text)
    with pytest.raises(InvalidInput) as error:
        read_site(tmp_path / "site.yml")
    assert error.value.problems[0].place == f"{tmp_path}/site.yml:{line}"
    assert message in error.value.problems[0].message


def test_a_job_means_the_same_whatever_becomes_of_the_names(catalog: Catalog) -> None:
    model = {"type": "custom_model", "path": "azureml:credit@stable"}
    catalog.set_label("model", "credit", "stable", "3")
    document = {**PARALLEL, "inputs": {**PARALLEL["inputs"], "model": model}}
    spec = read(document, catalog)
    catalog.add("model", "credit", {"type": "mlflow_model", "path": "/models/other"}, version="4")
    catalog.set_label("model", "credit", "stable", "4")
    catalog.add("environment", "sk", {"conda_file": {"dependencies": ["python=3.12"]}}, version="3")
    catalog.set_archived("data", "images", "", is_archived=True)
    again = read(spec.model_dump(mode="json"), catalog)
    assert again == spec
    assert (dict(again.input_paths())["model"].path, again.environment.python) == ("/models/credit", "3.11")


def test_the_labels_in_a_component_are_those_of_when_it_was_registered(catalog: Catalog) -> None:
    component = {"type": "pipeline", "jobs": {"a": {"component": "azureml:score", "environment": "azureml:sk@latest"}}}
    names = names_in(catalog, Site)
    document = {**component, "task": {"environment": "azureml:unknown@latest"}}
    kept = ComponentAsset.pinned({"type": "pipeline", "document": document}, names)["document"]
    assert kept["jobs"]["a"] == {"component": "azureml:score:5", "environment": "azureml:sk:2"}
    assert kept["task"] == {"environment": "azureml:unknown@latest"}


def test_environments_of_an_image_are_what_the_site_file_says(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "site.yml"
    file.write_text("images:\n  their.example/py*: azureml:sk@latest\n")
    document = {
        **PARALLEL,
        "task": {**PARALLEL["task"], "environment": {"image": "their.example/py:3", "conda_file": {}}},
    }
    spec = read(document, catalog, read_site(file))
    assert (spec.environment.image, spec.environment.python) == ("", "3.11")
    other = {**document, "task": {**document["task"], "environment": {"image": "other.example/py:3"}}}
    assert read(other, catalog, read_site(file)).environment.image == "other.example/py:3"


def test_an_output_of_a_job_that_is_not_there_is_told_with_its_place(catalog: Catalog) -> None:
    document = {**PARALLEL, "inputs": {**PARALLEL["inputs"], "data": {"path": "azureml://jobs/none/outputs/rows"}}}
    with pytest.raises(InvalidInput, match="/inputs/data/path: There is no job 'none'"):
        read(document, catalog)
