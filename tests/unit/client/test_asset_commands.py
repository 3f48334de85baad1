"""`parallelrun data|model|environment|component …` with this user's own assets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parallelrun.cli import main
from parallelrun.cli.exit_codes import ExitCode


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PARALLELRUN_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_text("a")
    (tmp_path / "data.yml").write_text("name: images\npath: ./images\ndescription: ours\n")
    return tmp_path


def out(capsys: pytest.CaptureFixture[str], line: str, code: int = ExitCode.OK) -> str:
    assert main(line.split()) == code, capsys.readouterr().err
    return capsys.readouterr().out


def test_versions_are_made_listed_shown_and_archived(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert out(capsys, "data create -f data.yml") == "azureml:images:1\n"
    assert (
        out(capsys, "data create -f data.yml --set version=2026-11 --set description=theirs")
        == "azureml:images:2026-11\n"
    )
    shown = json.loads(out(capsys, "data show --name images -o json"))
    assert (shown["version"], shown["description"], shown["archived"]) == ("2026-11", "theirs", False)
    assert Path(shown["content"]["path"], "a.png").read_text() == "a"
    assert out(capsys, "data list -o name") == "azureml:images:2026-11\n"
    assert out(capsys, "data list --name images -o name").split() == ["azureml:images:2026-11", "azureml:images:1"]
    out(capsys, "data label --name images --label stable --version 1")
    assert out(capsys, "data show --name images --label stable -o name") == "azureml:images:1\n"
    out(capsys, "data archive --name images --version 2026-11")
    assert out(capsys, "data list -o name") == "azureml:images:1\n"
    out(capsys, "data restore --name images --version 2026-11")
    out(capsys, "data archive --name images")
    assert out(capsys, "data list -o name") == ""
    assert "yes" in out(capsys, "data list --include-archived")


def test_a_local_folder_may_stay_where_it_is(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    out(capsys, "data create -f data.yml --no-upload")
    assert json.loads(out(capsys, "data show -n images -o json"))["content"]["path"] == f"{folder}/images"
    assert not (folder / "state" / "parallelrun" / "asset_files").exists()


def test_a_document_is_not_needed_for_a_path(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert out(capsys, "data create --name table --version 2 --type mltable --path images") == "azureml:table:2\n"
    shown = json.loads(out(capsys, "data show -n table -o json"))["content"]
    assert (shown["type"], Path(shown["path"]).name) == ("mltable", "images")
    assert out(capsys, "model create --name far --path s3://bucket/model") == "azureml:far:1\n"


def test_each_type_has_its_own_names(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "environment.yml").write_text("name: sk\nconda_file: {dependencies: [python=3.11]}\n")
    (folder / "component.yml").write_text("name: c\ntype: command\ncommand: echo\nenvironment: azureml:sk\n")
    assert out(capsys, "environment create -f environment.yml --version 4") == "azureml:sk:4\n"
    assert out(capsys, "component create -f component.yml") == "azureml:c:1\n"
    assert "environment: azureml:sk:4" in out(capsys, "component show --name c")
    assert "python=3.11" in out(capsys, "environment show --name sk")
    assert out(capsys, "model list -o json") == "[]\n"


@pytest.mark.parametrize(
    "line, code, message",
    [
        ("data create -f nothing.yml", ExitCode.INVALID_SPEC, "No such file"),
        ("data create -f data.yml --set type=uri_foldr", ExitCode.INVALID_SPEC, "data.yml: /type"),
        ("data create -f data.yml --set a.b=1", ExitCode.USAGE, "only whole fields"),
        ("data show --name images", ExitCode.USAGE, "there is no data of this name"),
        ("data show", ExitCode.USAGE, "--name"),
        ("data create", ExitCode.USAGE, "--name and --path"),
        ("data create --name x --path nothing", ExitCode.INVALID_SPEC, "there is no file or folder"),
    ],
)
def test_what_is_wrong_is_said_in_words(
    capsys: pytest.CaptureFixture[str], line: str, code: ExitCode, message: str
) -> None:
    assert main(line.split()) == code
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
