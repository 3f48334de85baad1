"""No notice goes to an inner address, however its receiver is named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.security.attacks.notices import ATTACKS
from tests.security.local_store import LocalStore
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    with LocalStore() as store:
        cluster = Cluster(api=True)
        target = PathTarget(cluster, store)
        with cluster:
            yield target


@pytest.mark.parametrize("name", BY_NAME)
def test_no_receiver_inside_is_told(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""
