"""Nobody who may submit jobs does anything to others who may."""

from __future__ import annotations

from functools import partial

import pytest

from tests.security import path_target
from tests.security.attacks import other_people, people, uploads
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in [*people.ATTACKS, *other_people.ATTACKS, *uploads.ATTACKS]}
check_attack = partial(path_target.check_attack, BY_NAME, token=PathTarget.token, visibility="own")


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_people_do_nothing_to_each_other(name: str) -> None:
    check_attack(name)
