"""What the proof finds when RQ may call whatever an entry of its queues names."""

from __future__ import annotations

import pytest

from tests.security import test_rq_jobs as rq_jobs
from tests.twins.sabotage import expect_failure


@pytest.mark.integration
@pytest.mark.parametrize("service", rq_jobs.SERVICES)
def test_entries_that_are_run_as_rq_would_are_found(service: str) -> None:
    with expect_failure():
        rq_jobs.check_attack(service, without="rq.only_ours")
