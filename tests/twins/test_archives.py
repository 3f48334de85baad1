"""What the attacks find when zips of code are unpacked as they come."""

from __future__ import annotations

import pytest

from tests.security import path_target
from tests.security.attacks.archives import ATTACKS
from tests.twins.sabotage import expect_failure

BY_NAME = {attack.name: attack for attack in ATTACKS}
OF_LIMITS_OF_THE_STORE = {"an archive of more files than a job may have", "an archive of two files in one place"}
"""These are also refused where the files of all code are stored."""


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - OF_LIMITS_OF_THE_STORE))
def test_archives_that_are_unpacked_as_they_come_are_found(name: str) -> None:
    with expect_failure():
        path_target.check_attack(BY_NAME, name, "zips.members")
