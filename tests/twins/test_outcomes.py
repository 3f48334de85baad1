"""What the proofs find when leaders believe whatever is in a job's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.queue.job_on_redis import JobOnRedis
from tests.security import test_outcomes as outcomes
from tests.twins.sabotage import expect_failure, without

if TYPE_CHECKING:
    from redis import Redis


@pytest.mark.slow
@pytest.mark.integration
def test_rows_that_anybody_may_forge_are_found() -> None:
    with expect_failure():
        outcomes.check_forged_rows(without="outcomes.sealed")


@pytest.mark.integration
@pytest.mark.parametrize("how", ["without a seal", "another record", "of another job", "an output"])
def test_entries_whose_seal_nobody_checks_are_found(redis: Redis, how: str) -> None:
    with without("outcomes.sealed"), expect_failure():
        outcomes.check_refused(JobOnRedis(redis), how)
