"""What the proofs find when packages are installed with the agent's rights, or run what they have brought."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.security import test_packages as packages
from tests.twins.sabotage import expect_failure, without
from tests.unit.agent import test_builder_home as homes
from tests.unit.agent.test_builder_home import cache

__all__ = ["cache"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users"),
]


def test_a_setup_that_runs_as_the_agent_is_found() -> None:
    with expect_failure():
        packages.check_setup("environments.builder")


@pytest.mark.parametrize(
    "name",
    [
        "a package that replaces its environment's pyvenv.cfg",
        "a package with a .pth file that runs code",
        "a package with scripts named as programs of its installer",
        "a package with modules that each Python imports at its start",
        "a package whose entry points are named as programs of its installer",
    ],
)
def test_what_is_run_below_an_environment_while_it_is_made_is_found(name: str) -> None:
    with expect_failure():
        packages.check_attack(name, "environments.compile")


def test_scripts_that_replace_the_interpreter_are_found() -> None:
    with pytest.raises(AssertionError, match="its code was run"):
        packages.check_attack("a package with scripts named as the interpreter", "environments.interpreter")


@pytest.mark.parametrize("way", packages.WAYS)
def test_a_setup_that_runs_beside_credentials_is_found(way: str) -> None:
    with expect_failure():
        packages.check_credentials(way, "environments.credentials")


@pytest.mark.parametrize("name", [name for name in packages.BY_NAME if "lead out of its environment" in name])
def test_files_that_come_to_lie_wherever_their_names_lead_are_found(name: str) -> None:
    with expect_failure():
        packages.check_attack(name, "environments.beneath")


def test_downloads_of_builders_that_nobody_removes_are_found(cache: Path) -> None:
    with without("environments.pruned"), expect_failure():
        homes.test_a_builders_cache_goes_with_an_environment_and_the_rest_with_its_last_one(cache)


def test_a_mark_that_a_package_can_make_is_found() -> None:
    with expect_failure():
        packages.check_attack("a package that marks its environment as complete", "environments.marked")
