"""Which image the nodes of a job are of: the one that it names, where its compute has nodes of any image."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.computes.images import has_image, image_of
from parallelrun_core.computes.selection import Selection
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.computes import BuiltImage, built_image_of
from parallelrun_core.spec import JobSpec


@pytest.mark.parametrize("kind, image", [("docker", "team/a:1"), ("local", ""), ("manual", "")])
def test_a_job_is_recorded_with_an_image_only_where_it_gets_one(tmp_path: Path, kind: str, image: str) -> None:
    catalog = ComputeCatalog(tmp_path)
    catalog.define(read_definition({"name": "pool", "type": kind}))
    spec = JobSpec.parse(
        {
            "entry_script": "e.py",
            "inputs": "/in",
            "compute": "pool",
            "environment": {"image": "team/a:1", "pip": ["six"]},
        }
    )

    recorded = spec.model_dump(mode="json") | Selection(catalog).place(spec)

    assert image_of(recorded) == image
    assert has_image({"steps": {"one": {"job": recorded}}}) == bool(image)
    assert recorded["environment"]["pip"] == ["six"]


def test_without_a_compute_the_name_of_an_image_has_no_effect(tmp_path: Path) -> None:
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "environment": {"image": "team/a:1"}})

    recorded = spec.model_dump(mode="json") | Selection(ComputeCatalog(tmp_path)).place(spec)

    assert recorded["environment"]["image"] == "team/a:1"
    assert image_of(recorded) == ""


STORED = "azureml:code/" + "a" * 64


def with_build(compute: str, path: str = STORED) -> JobSpec:
    build = {"path": path, "dockerfile_path": "./docker/Dockerfile"}
    environment = {"build": build, "pip": ["six"]}
    return JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "compute": compute, "environment": environment})


@pytest.mark.parametrize("kind", ["docker", "local"])
def test_a_job_is_recorded_with_a_dockerfile_only_where_an_image_is_built(tmp_path: Path, kind: str) -> None:
    catalog = ComputeCatalog(tmp_path)
    catalog.define(read_definition({"name": "pool", "type": kind}))
    spec = with_build("pool")

    recorded = JobSpec.parse(spec.model_dump(mode="json") | Selection(catalog).place(spec))
    image = image_of(recorded.model_dump(mode="json"))

    assert built_image_of(image) == (BuiltImage("a" * 64, "docker/Dockerfile") if kind == "docker" else None)
    assert recorded.environment.node_image == image == catalog.get("pool").shape_of(recorded).image
    assert recorded.environment.pip == ("six",)


def test_where_nodes_are_of_images_and_none_is_built_a_dockerfile_is_refused(tmp_path: Path) -> None:
    catalog = ComputeCatalog(tmp_path)
    catalog.define(read_definition({"name": "pool", "type": "swarm"}))
    with pytest.raises(InvalidInput, match="of type swarm") as refused:
        Selection(catalog).place(with_build("pool"))
    assert refused.value.problems[0].pointer == "/environment/build"
    assert "`image`" in refused.value.problems[0].hint


def test_what_is_not_stored_yet_has_no_name() -> None:
    assert with_build("pool", "/src/docker").environment.node_image == ""


@pytest.mark.parametrize(
    "environment, pointer, message",
    [
        ({"image": "a", "build": {"path": "/x"}}, "/environment/build", "either image or build"),
        ({"build": {"path": "/x", "dockerfile_path": "../Dockerfile"}}, "/environment/build/dockerfile_path", "below"),
        ({"build": {"path": "s3://b/x"}}, "/environment/build/path", "what an image is built of can't be read there"),
        ({"build": {"path": "/x", "target": "y"}}, "/environment/build/target", "unknown field"),
        ({"build": {}}, "/environment/build/path", "required"),
    ],
)
def test_a_wrong_dockerfile_is_told_at_its_field(environment: dict[str, object], pointer: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "environment": environment})
    assert [problem.pointer for problem in refused.value.problems] == [pointer]
