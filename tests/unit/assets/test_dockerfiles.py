"""A Dockerfile means the same folder wherever an environment is written down: in a job, a file, or an asset."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.assets.contents import keep_named
from parallelrun_core.assets.document import read_asset, read_asset_file
from parallelrun_core.assets.resolving import names_in
from parallelrun_core.assets.site import Site
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.layout import code_store
from parallelrun_core.names.assets import stored_code
from parallelrun_core.spec.environment import Build

JOB = {"code": "src", "entry_script": "e.py", "inputs": "data"}
STEP = {"type": "command", "command": "true", "environment": "file:envs/env.yml"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    context = tmp_path / "envs" / "docker"
    context.mkdir(parents=True)
    (context / "Dockerfile").write_text("FROM base\n")
    (tmp_path / "envs" / "env.yml").write_text("{name: e, build: {path: docker}}")
    return tmp_path


def test_the_folder_is_beside_the_file_that_names_it(folder: Path) -> None:
    wanted = Build(path=f"{folder}/envs/docker")
    inline = read_job({**JOB, "environment": {"build": {"path": "envs/docker"}}}, folder=folder)
    assert inline.job.environment.build == wanted
    by_file = read_job({**STEP, "$schema": "commandJob"}, folder=folder)
    assert by_file.job.environment.build == wanted


def test_a_registered_environment_has_a_copy_of_its_own(folder: Path) -> None:
    root = folder / "root"
    read = read_asset_file("environment", folder / "envs" / "env.yml", keep_code=partial(keep_named, root))
    asset, _ = Catalog(root).add("environment", read.name, read.content, version="1", about=read.about)
    (folder / "envs" / "docker" / "Dockerfile").write_text("FROM other\n")

    reading = read_job({**JOB, "environment": asset.id}, folder=folder, names=names_in(Catalog(root), Site))
    build = reading.job.environment.build
    assert build is not None
    assert (code_store(root) / stored_code(build.path) / "Dockerfile").read_text() == "FROM base\n"
    assert reading.job.environment.node_image.endswith("/Dockerfile")


def test_a_component_takes_the_dockerfile_of_its_environment_along(folder: Path) -> None:
    root = folder / "root"
    (folder / "step.yml").write_text(
        "{name: s, type: command, command: 'true', "
        "environment: {build: {path: envs/docker, dockerfile_path: Dockerfile}}}"
    )
    read = read_asset_file("component", folder / "step.yml", keep_code=partial(keep_named, root))
    build = read.content["document"]["environment"]["build"]
    assert (code_store(root) / stored_code(build["path"]) / "Dockerfile").exists()


def test_one_that_comes_over_the_network_brings_no_folder() -> None:
    with pytest.raises(InvalidInput, match="over the network") as refused:
        read_asset("environment", {"name": "e", "build": {"path": "/somewhere"}})
    assert refused.value.problems[0].pointer == "/build/path"


def test_a_folder_in_azures_stores_is_out_of_reach_and_a_note_says_so(tmp_path: Path) -> None:
    environment = {"build": {"path": "https://account.blob.core.windows.net/c/x", "dockerfile_path": "Dockerfile"}}
    reading = read_job({**STEP, "$schema": "commandJob", "environment": environment}, folder=tmp_path)
    assert reading.job.environment.build is None
    assert [note.pointer for note in reading.notes] == ["/environment/build/path"]
