"""What the proofs find when jobs can put files into the home of their agent, or in place of its cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.security import test_packages as packages
from tests.security.attacks import planted
from tests.twins.sabotage import expect_failure, nothing, replaced
from tests.unit.agent import test_users as users

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users"),
]


@pytest.mark.parametrize("name", [attack.name for attack in planted.ATTACKS])
def test_a_home_that_jobs_can_fill_is_found(name: str) -> None:
    with expect_failure():
        packages.check_attack(name, "agent.closed_home")


def test_a_cache_that_a_job_can_replace_is_found(tmp_path: Path) -> None:
    with replaced("parallelrun_agent.staging.place:check_cache", nothing), expect_failure():
        users.test_nothing_is_staged_where_a_job_could_replace_it(tmp_path)
