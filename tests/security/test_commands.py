"""No command runs what others may name: the paths and the values of its inputs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.security.attacks.commands import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    cluster = Cluster(api=True)
    target = PathTarget(cluster)
    with cluster:
        yield target


@pytest.mark.parametrize("name", BY_NAME)
def test_what_a_command_is_given_is_not_run(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""


def check_attack(name: str, without: str) -> None:
    """Play an attack against a cluster without a mechanism."""
    cluster = Cluster(api=True, without=without)
    target = PathTarget(cluster)
    with cluster:
        assert BY_NAME[name].play(target) == ""
