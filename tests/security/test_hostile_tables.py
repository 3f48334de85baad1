"""Hostile files fail alone: neither who reads them nor the rows of others suffer."""

from __future__ import annotations

from functools import partial

import pytest

from tests.security import path_target
from tests.security.attacks.tables import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
check_attack = partial(path_target.check_attack, BY_NAME, token=PathTarget.token)


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_a_hostile_file_fails_alone(name: str) -> None:
    check_attack(name)
