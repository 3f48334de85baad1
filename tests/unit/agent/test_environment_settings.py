"""Where environments are kept, and which one a job gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parallelrun_agent.environments.job_python import Recipe
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.spec import Environment


@pytest.mark.parametrize(
    "variables, cache",
    [
        ({"XDG_CACHE_HOME": "{tmp}/cache"}, "{tmp}/cache/parallelrun"),
        ({"HOME": "{tmp}", "XDG_CACHE_HOME": ""}, "{tmp}/.cache/parallelrun"),
        ({"PARALLELRUN_CACHE_DIR": "{tmp}/own", "HOME": "/nowhere"}, "{tmp}/own"),
    ],
)
def test_environments_are_kept_in_the_users_cache_unless_told_otherwise(
    variables: dict[str, str], cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    assert str(AgentSettings(root=tmp_path).cache_folder) == cache.format(tmp=tmp_path)


def test_the_cache_of_a_user_without_a_home_is_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert AgentSettings(root=tmp_path).cache_folder.is_relative_to(tmp_path)


def test_the_same_wishes_share_an_environment_and_others_do_not(tmp_path: Path) -> None:
    wishes = [
        Environment(pip=("six",)),
        Environment(conda_file={"dependencies": [{"pip": ["six"]}]}, name="a label"),
        Environment(pip=("six==1.16.0",)),
        Environment(pip=("six",), conda_file={"dependencies": ["python=3.12"]}),
    ]
    folders = [Recipe.of(wish).folder(tmp_path) for wish in wishes]
    assert folders[0] == folders[1]
    assert len(set(folders)) == 3
    assert [Recipe.of(wish).python for wish in wishes] == [sys.executable] * 3 + ["3.12"]


def test_what_names_no_package_is_the_nodes_own_python() -> None:
    old = {"dependencies": ["python=3.7", "pip"]}
    for wish in (Environment(), Environment(image="some/image", name="x"), Environment(conda_file=old)):
        assert not wish.is_own
