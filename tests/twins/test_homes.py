"""What the proofs find when jobs can put files into the home of their agent."""

from __future__ import annotations

import os

import pytest

from tests.security import test_packages as packages
from tests.security.attacks import planted
from tests.twins.sabotage import expect_failure

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users"),
]


@pytest.mark.parametrize("name", [attack.name for attack in planted.ATTACKS])
def test_a_home_that_jobs_can_fill_is_found(name: str) -> None:
    with expect_failure():
        packages.check_attack(name, "agent.closed_home")
