"""Nobody who may submit jobs does anything to others who may."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.security.attacks import other_people, people, uploads
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in [*people.ATTACKS, *other_people.ATTACKS, *uploads.ATTACKS]}


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_people_do_nothing_to_each_other(name: str) -> None:
    check_attack(name)


def check_attack(name: str, without: str = "") -> None:
    """Play an attack against a cluster where people see only their own jobs, without a mechanism if one is given."""
    cluster = Cluster(api=True, token=PathTarget.token, without=without)
    target = PathTarget(cluster)
    cluster.environments["api"]["PARALLELRUN_VISIBILITY"] = "own"
    with cluster:
        assert BY_NAME[name].play(target) == ""
