"""No datastore has the secret of another one sent to where it doesn't belong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.security import path_target
from tests.security.attacks.stores import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
LED_AWAY = "a store that redirects to another server"
check_attack = partial(path_target.check_attack, BY_NAME, has_store=True)
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    with path_target.running(has_store=True) as target:
        yield target


@pytest.mark.parametrize("name", BY_NAME)
def test_what_a_submitter_names_in_a_store_leads_nowhere_else(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""
