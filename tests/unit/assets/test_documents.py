"""Azure ML's documents of assets, and ours, with the files that they name."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.assets.contents import contents_of, keep_code, keep_copy, keep_zip
from parallelrun_core.assets.document import read_asset, read_asset_file
from parallelrun_core.code.source import CodeSource
from parallelrun_core.errors import InvalidInput

CONDA = "name: sk\ndependencies: [python=3.11, pip, {pip: [numpy==2.1.0]}]\n"
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
name: prepare
display_name: Prepare
version: 2
type: command
inputs: {raw: {type: uri_folder}}
outputs: {made: {type: uri_folder}}
code: ./src
environment: {conda_file: conda.yml, image: mcr.example.com/x}
command: python prepare.py ${{inputs.raw}} ${{outputs.made}}
"""


def test_documents_of_azure_ml_are_read_as_they_are(tmp_path: Path) -> None:
    data = read_asset(
        "data",
        {"$schema": "…", "name": "images", "version": 3, "description": "x", "tags": {"a": 1}, "type": "mltable",
         "path": "azureml://datastores/d/paths/x"},
    )  # fmt: skip
    assert (data.name, data.version, data.local) == ("images", "3", None)
    assert data.content == {"type": "mltable", "path": "azureml://datastores/d/paths/x"}
    assert data.about.tags == {"a": "1"}
    model = read_asset("model", {"name": "m", "path": "./model", "type": "mlflow_model"}, folder=tmp_path)
    assert (model.content, model.local) == ({"type": "mlflow_model", "path": f"{tmp_path}/model"}, tmp_path / "model")
    (tmp_path / "conda.yml").write_text(CONDA)
    environment = read_asset(
        "environment", {"name": "sk", "image": "mcr.example.com/x", "conda_file": "conda.yml"}, folder=tmp_path
    )
    assert environment.content["conda_file"]["dependencies"][0] == "python=3.11"


def test_a_component_has_all_that_it_names_in_it(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "prepare.py").write_text("print('made')\n")
    (tmp_path / "conda.yml").write_text(CONDA)
    (tmp_path / "prepare.yml").write_text(COMPONENT)
    (tmp_path / "whole.yml").write_text(
        "name: all\ntype: pipeline\njobs: {a: {type: command, component: prepare.yml}, b: {code: src/prepare.py}}"
    )
    kept: list[Path | CodeSource] = []

    def keep(folder: Path | CodeSource, _: str) -> str:
        kept.append(folder)
        return f"azureml:code/{keep_code(tmp_path / 'root', folder) if isinstance(folder, Path) else '0' * 64}"

    asset = read_asset_file("component", tmp_path / "whole.yml", keep_code=keep)
    inner = asset.content["document"]["jobs"]["a"]["component"]
    assert kept == [tmp_path / "src", CodeSource(None, (tmp_path / "src" / "prepare.py",))]
    assert inner["code"].startswith("azureml:code/")
    assert (tmp_path / "root" / "code" / inner["code"][13:] / "prepare.py").exists()
    assert inner["environment"]["conda_file"]["name"] == "sk"
    assert read_asset("component", asset.document()).content == asset.content, "as it is sent"


@pytest.mark.parametrize(
    "kind, document, pointer, message",
    [
        ("data", {"name": "a b", "path": "/x"}, "/name", "must be 1 to 128 letters"),
        ("data", {"name": "a"}, "/path", "required"),
        ("data", {"name": "a", "path": "/x", "type": "uri_foldr"}, "/type", "uri_folder"),
        ("data", {"name": "a", "path": "/x", "pth": "/x"}, "/pth", "unknown field"),
        ("data", {"name": "a", "path": "hdfs://x/y"}, "/path", "not supported"),
        ("environment", {"name": "a"}, "", "neither image nor build nor conda_file"),
        ("environment", {"name": "a", "conda_file": {"dependencies": [1]}}, "/conda_file", "1"),
        ("component", {"name": "a", "type": "comand"}, "/type", "comand"),
        ("component", {"name": "a", "type": "command", "code": "./src"}, "/code", "came over the network"),
        ("model", [], "", "is a mapping"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(kind: str, document: Any, pointer: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        read_asset(kind, document)
    assert [problem.pointer for problem in error.value.problems] == [pointer]


def test_a_problem_of_a_file_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "data.yml").write_text("name: images\nversion: 1\ntype: uri_foldr\npath: ./x\n")
    with pytest.raises(InvalidInput) as error:
        read_asset_file("data", tmp_path / "data.yml")
    assert error.value.problems[0].place == f"{tmp_path}/data.yml:3"


def test_a_copy_is_named_by_its_content_and_holds_what_was_copied_under_its_name(tmp_path: Path) -> None:
    model = tmp_path / "model"
    (model / "deep").mkdir(parents=True)
    (model / "a.bin").write_bytes(b"a" * 3_000_000)
    (model / "deep" / ".git").write_text("data may have any name")
    files = keep_copy(tmp_path / "root", model)
    kept = contents_of(tmp_path / "root", files)
    assert (kept / "model" / "a.bin").read_bytes() == b"a" * 3_000_000
    assert (kept / "model" / "deep" / ".git").exists()
    assert keep_copy(tmp_path / "root", model) == files
    one = keep_copy(tmp_path / "root", model / "a.bin")
    assert contents_of(tmp_path / "root", one).joinpath("a.bin").stat().st_mode & 0o777 == 0o444
    with pytest.raises(InvalidInput, match="there is no file or folder"):
        keep_copy(tmp_path / "root", tmp_path / "nothing")


@pytest.mark.parametrize("file", ["../a", "/a", "b", "a/../../b", ""])
def test_what_is_uploaded_must_be_where_its_document_says(tmp_path: Path, file: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/x.txt", "x")
    with pytest.raises(InvalidInput):
        keep_zip(tmp_path / "root", packed, file)
    assert keep_zip(tmp_path / "root", packed, "a")
    assert not list(tmp_path.glob("root/asset_files/.*"))
