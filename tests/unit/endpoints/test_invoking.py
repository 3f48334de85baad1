"""A deployment and an invocation become the document of a job, or it is said why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.resolving import names_in
from parallelrun_core.assets.site import Site
from parallelrun_core.endpoints.invoking import job_document, read_invocation
from parallelrun_core.endpoints.records import Deployment, Slot
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import Names

MODEL = {"entry_script": "main.py", "inputs": {"data": {"path": "later"}, "model": {"path": "/m"}}, "run_max_try": 4}
LATER = "/.parallelrun-later/__parallelrun_input_images__"
PIPELINE = {
    "type": "pipeline",
    "outputs": {"scores": {"of": {"step": "a", "output": "x"}}},
    "steps": {"a": {"job": {"inputs": {"images": {"path": LATER}}, "command": "echo __parallelrun_input_word__"}}},
}


def deployment(**fields: Any) -> Deployment:
    settings: dict[str, Any] = {"name": "blue", "endpoint": "iris", "made": 0, "at": 0, "type": "model", "job": MODEL}
    return Deployment(**{**settings, **fields})


def of_pipeline() -> Deployment:
    slots = {"images": Slot(type="uri_folder"), "word": Slot(type="string", default="hello")}
    return deployment(type="pipeline", job=PIPELINE, slots=slots)


def made(of: Deployment, names: Names | None = None, **given: Any) -> dict[str, Any]:
    return job_document(of, read_invocation(given), names=names)


@pytest.mark.parametrize(
    "given, inputs",
    [
        ({"input": "/a"}, {"data": {"path": "/a"}}),
        ({"input": "/a", "input_type": "uri_file"}, {"data": {"path": "/a", "type": "uri_file"}}),
        ({"input": {"path": "/a", "type": "mltable"}}, {"data": {"path": "/a", "type": "mltable"}}),
        ({"inputs": {"x": "/a", "y": {"path": "/b"}}}, {"x": {"path": "/a"}, "y": {"path": "/b"}}),
    ],
)
def test_a_model_takes_any_data(given: dict[str, Any], inputs: dict[str, Any]) -> None:
    document = made(deployment(), **given)

    assert document["inputs"] == {"model": {"path": "/m"}, **inputs}
    assert document["input_data"] == list(inputs)
    assert MODEL["inputs"]["data"] == {"path": "later"}  # type: ignore[index]


def test_retries_are_counted_as_in_a_deployment_and_tags_added_to_its_own() -> None:
    tagged = deployment(job={**MODEL, "tags": {"team": "a"}})
    assert made(tagged, input="/a", tags={})["tags"] == {"team": "a"}
    assert made(tagged, input="/a", tags={"run": "b"})["tags"] == {"team": "a", "run": "b"}
    assert made(deployment(), input="/a")["run_max_try"] == 4
    assert made(deployment(), input="/a", retry_settings={"max_retries": 0})["run_max_try"] == 1


def test_a_pipeline_gets_data_and_texts_where_they_are_used(tmp_path: Path) -> None:
    document = made(of_pipeline(), inputs={"images": "/a", "word": "there"}, outputs={"scores": "/out"})

    assert document["steps"]["a"]["job"] == {"inputs": {"images": {"path": "/a"}}, "command": "echo there"}
    assert document["outputs"]["scores"] == {"of": {"step": "a", "output": "x"}, "path": "/out"}
    assert made(of_pipeline(), input="/b")["steps"]["a"]["job"]["command"] == "echo hello"
    catalog, site = Catalog(tmp_path), Site(datastores={"blobs": "/blobs"})
    catalog.add("data", "images", {"type": "uri_folder", "path": "/images"}, version="1")
    names, place = names_in(catalog, lambda: site), "azureml://datastores/blobs/paths/x"
    for images, path in (("azureml:images@latest", "/images"), (place, "/blobs/x")):
        document = made(of_pipeline(), names, input=images, outputs={"scores": place})
        assert document["steps"]["a"]["job"]["inputs"] == {"images": {"path": path}}
        assert document["outputs"]["scores"]["path"] == "/blobs/x"
    with pytest.raises(InvalidInput, match=r"/inputs/images.*no data of this name"):
        made(of_pipeline(), names, input="azureml:pictures:1")


@pytest.mark.parametrize(
    "of, given, words",
    [
        (deployment(), {}, "/input: an invocation gives the data"),
        (deployment(), {"inputs": {"model": "/a"}}, "/inputs/model: 'model' is the deployment's own model"),
        (deployment(), {"input": "/a", "inputs": {"b": "/b"}}, "/input: inputs are given, too"),
        (deployment(), {"input": "/a", "mini_batch_sise": 1}, "did you mean 'mini_batch_size'?"),
        (of_pipeline(), {}, "/inputs/images: this input is required"),
        (of_pipeline(), {"inputs": {"images": "/a", "x": 1}}, "/inputs/x: an invocation can't give this input"),
        (of_pipeline(), {"input": "/a", "instance_count": 2}, "/instance_count: this has no meaning"),
        (of_pipeline(), {"input": "/a", "outputs": {"x": "/x"}}, "/outputs/x: the pipeline has no such output"),
        (of_pipeline(), {"inputs": {"images": "/a", "word": ["b"]}}, "/inputs/word: must be of type string"),
    ],
)
def test_what_cannot_be_given_is_said_with_its_place(of: Deployment, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made(of, **given)

    assert words in str(refused.value)
