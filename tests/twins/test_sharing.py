"""What the proofs find when slots are not shared."""

from __future__ import annotations

import pytest

from tests.integration import test_sharing as sharing
from tests.twins import sabotage
from tests.twins.sabotage import expect_failure
from tests.unit.agent import test_fair_share as fair_share


@pytest.mark.integration
@pytest.mark.slow
def test_a_node_that_takes_no_worker_back_is_found() -> None:
    with expect_failure():
        sharing.check_a_small_job_behind_a_long_one("agent.take_back")


def test_histories_without_workers_that_are_taken_back_are_found() -> None:
    with sabotage.without("agent.take_back"), expect_failure():
        for seed in range(60):
            fair_share.check_histories(seed)


@pytest.mark.integration
@pytest.mark.slow
def test_a_pause_that_is_forgotten_is_found() -> None:
    with expect_failure():
        sharing.check_a_paused_job("job.orders")
