"""No notice goes to an inner address, however its receiver is named."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.security import path_target
from tests.security.attacks.notices import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
check_attack = partial(path_target.check_attack, BY_NAME, has_store=True)
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    with path_target.running(has_store=True) as target:
        yield target


@pytest.mark.parametrize("name", BY_NAME)
def test_no_receiver_inside_is_told(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""
