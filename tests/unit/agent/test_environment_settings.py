"""Where environments are kept, and which one a job gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parallelrun_agent.environments.recipe import recipes_of
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_core.spec import Environment
from parallelrun_core.spec.requirements import ParsedRequirement
from tests.twins.sabotage import expect_failure, replaced


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
    assert str(AgentSettings.from_command_line(["--root", str(tmp_path)]).cache_folder) == cache.format(tmp=tmp_path)


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
    recipes = [recipes_of(wish, "anna")[-1] for wish in wishes]
    folders = [recipe.folder(tmp_path) for recipe in recipes]
    assert folders[0] == folders[1]
    assert len(set(folders)) == 3
    assert [recipe.python for recipe in recipes] == [sys.executable] * 3 + ["3.12"]


LOCKED = f"six==1.16.0 --hash=sha256:{'0' * 64}"


def test_an_environment_is_shared_by_owners_only_if_all_of_it_is_locked_by_hashes(tmp_path: Path) -> None:
    check_sharing(tmp_path)


def check_sharing(cache: Path) -> None:
    """Compare the environments that jobs of two owners get, and the users that build these."""
    uids = Uids.parse("20000-59999")
    for lines, is_shared in (((LOCKED,), True), ((LOCKED, "six"), False), (("six==1.16.0",), False)):
        anna, bert = (recipes_of(Environment(pip=lines), owner)[0] for owner in ("anna", "bert"))
        assert anna.is_locked == is_shared
        assert (anna.folder(cache, uids) == bert.folder(cache, uids)) == is_shared
        assert (anna.folder(cache) == bert.folder(cache)) == is_shared
        assert (anna.builder(uids) == bert.builder(uids)) == is_shared
    own = recipes_of(Environment(pip=(LOCKED,)), "anna")[1]
    assert (own.owner, own.is_locked) == ("anna", False), "where that can't be installed"
    assert recipes_of(Environment(pip=("six",)), "anna")[0].builder(None) == SAME_USER


def test_environments_of_all_owners_in_one_are_found(tmp_path: Path) -> None:
    everything = ParsedRequirement("six", is_locked=True)
    with (
        expect_failure(),
        replaced("parallelrun_agent.environments.recipe:parse_requirement", lambda _: everything),
    ):
        check_sharing(tmp_path)


def test_a_node_installs_nothing_from_hosts_that_no_operator_has_listed() -> None:
    check_hosts()


def check_hosts() -> None:
    """Compare the URLs of an environment with hosts once more, where they are used."""
    commit = "0123456789" * 4
    wishes = [
        Environment(pip=(f"x @ git+https://git.example/x@{commit}",)),
        Environment(pip=("six",), index_url="https://index.example/simple"),
    ]
    for wish in wishes:
        assert recipes_of(wish, "anna", hosts=["git.example", "index.example"])
        with pytest.raises(ValueError, match="PARALLELRUN_PACKAGE_HOSTS"):
            recipes_of(wish, "anna", hosts=["elsewhere.example"])


def test_a_node_that_installs_from_everywhere_is_found() -> None:
    with (
        expect_failure(),
        replaced("parallelrun_core.spec.environment:Packages.urls_elsewhere", lambda *_: {}),
    ):
        check_hosts()


def test_what_names_no_package_is_the_nodes_own_python() -> None:
    old = {"dependencies": ["python=3.7", "pip"]}
    for wish in (Environment(), Environment(image="some/image", name="x"), Environment(conda_file=old)):
        assert not wish.is_own
