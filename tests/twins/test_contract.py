"""What the proof finds when an answer is not in the contract."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.security import test_contract as contract
from tests.twins.sabotage import expect_failure


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(2 * contract.MOST_S)
def test_an_answer_that_is_not_in_the_contract_is_found() -> None:
    cluster = Cluster(nodes=0, api=True, without="contract.tokens", token=contract.TOKEN)
    with cluster, expect_failure():
        contract.check_phase(
            cluster, {"CONTRACT_ENDED": "job_1", "CONTRACT_OPEN": ""}, "coverage", only="/v1/schedules"
        )
