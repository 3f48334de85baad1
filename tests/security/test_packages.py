"""What packages do when they are installed, and jobs for those who install them: nothing of theirs is the agent's, or
comes near to what is the agent's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from parallelrun_agent.users.choice import Uids
from tests.security import planting, targets
from tests.security.attacks import planted
from tests.security.attacks.packages import ATTACKS, run_by_installers
from tests.security.hostile_packages import SOURCE
from tests.security.target import INSTALLERS_SECRETS, HttpTarget
from tests.security.targets.node import FLAGS, SERVICES_UID, services

BY_NAME = {attack.name: attack for attack in (*ATTACKS, *planted.ATTACKS)}
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users"),
]


@pytest.fixture(scope="module")
def target() -> Iterator[HttpTarget]:
    with open_folders(), targets.reach("node") as reached:
        yield reached


@contextmanager
def open_folders() -> Iterator[None]:
    """Put temporary folders where other users get, as they don't into pytest's."""
    with patch.object(tempfile, "tempdir", "/tmp"):
        yield


@pytest.mark.parametrize("name", [attack.name for attack in ATTACKS])
def test_packages_run_nothing_when_they_are_installed(name: str, target: HttpTarget) -> None:
    assert BY_NAME[name].play(target) == ""


@pytest.mark.parametrize("name", [attack.name for attack in planted.ATTACKS])
def test_no_configuration_that_a_job_has_left_counts_for_its_agent(name: str, target: HttpTarget) -> None:
    assert BY_NAME[name].play(target) == ""


def check_attack(name: str, without: str) -> None:
    """Play an attack against a node with users for workers, without a mechanism."""
    with (
        open_folders(),
        services(agent_flags=FLAGS, services_uid=SERVICES_UID, is_apart=True, without=without) as node,
    ):
        assert BY_NAME[name].play(node) == ""


WAYS = {
    "a name": {},
    "a configuration of uv": {
        "UV_CONFIG_FILE": "[[index]]\nname = 'x'\nurl = 'https://canary:canary@localhost/simple'\nexplicit = true\n"
    },
    "a configuration of pip": {"PIP_CONFIG_FILE": "[global]\nproxy = http://canary:canary@localhost:1\n"},
    "a file of passwords": {"NETRC": "machine localhost login canary password canary\n"},
    "a keyring": {"UV_KEYRING_PROVIDER": ""},
}
"""Ways to give credentials to installers: variables, and the text of the file that each names."""


@pytest.mark.parametrize("way", WAYS)
def test_no_package_runs_its_setup_where_installers_have_credentials(way: str) -> None:
    check_credentials(way)


def check_credentials(way: str, without: str = "") -> None:
    """Install a package that has to be built, where nodes build such, and their installers have credentials."""
    flags = (*FLAGS, "--allow-source-packages", "true")
    settings = {} if way == "a name" else dict.fromkeys(INSTALLERS_SECRETS, "")
    with open_folders(), tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name, text in WAYS[way].items():
            path = Path(folder) / name
            path.write_text(text)
            settings[name] = str(path) if text else "subprocess"
        apart: dict[str, Any] = {"services_uid": SERVICES_UID, "is_apart": True, "settings": settings}
        with services(agent_flags=flags, without=without, **apart) as node:
            assert run_by_installers(SOURCE, node) == []


def test_packages_that_may_run_their_setup_do_so_as_a_user_that_nobody_else_is() -> None:
    check_setup()


def check_setup(without: str = "") -> None:
    """Install a package whose setup looks for a file and for variables of the agent."""
    flags = (*FLAGS, "--allow-source-packages", "true")
    apart: dict[str, Any] = {
        "services_uid": SERVICES_UID,
        "is_apart": True,
        "settings": dict.fromkeys(INSTALLERS_SECRETS, ""),
    }
    with open_folders(), services(agent_flags=flags, without=without, **apart) as node:
        ran = run_by_installers(SOURCE, node)
    assert ran
    uids = Uids.parse(FLAGS[1])
    for uid, obtained, _ in (each.split("|", 2) for each in ran):
        assert int(uid) > uids.locked_builder
        assert int(uid) in uids
        assert obtained == ""


def test_a_configuration_that_the_user_of_an_agent_has_is_no_test_to_replace(tmp_path: Path) -> None:
    theirs = tmp_path / ".aws" / "config"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    with pytest.raises(FileExistsError):
        planting.write(theirs, b"planted")
    assert theirs.read_text() == "theirs"
    for _ in range(2):
        planting.write(tmp_path / ".pip" / "pip.conf", b"planted")
    assert (tmp_path / ".pip" / "pip.conf").read_text() == "planted"
