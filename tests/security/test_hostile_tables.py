"""Hostile files fail alone: neither who reads them nor the rows of others suffer."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.security.attacks.tables import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_a_hostile_file_fails_alone(name: str) -> None:
    check_attack(name)


def check_attack(name: str, without: str = "") -> None:
    """Play an attack against a cluster, without a mechanism if one is given."""
    cluster = Cluster(api=True, token=PathTarget.token, without=without)
    target = PathTarget(cluster)
    with cluster:
        assert BY_NAME[name].play(target) == ""
