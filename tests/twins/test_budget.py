"""What the proofs about budgets find when a part of the mechanism is gone."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from parallelrun_core.wire.costs import Spent
from parallelrun_master.ledger.cost_log import CostLog
from tests.cluster import Cluster
from tests.integration import test_budget as proofs
from tests.twins.sabotage import always, expect_failure, nothing
from tests.unit.master import test_cost_log as logs


@pytest.mark.integration
@pytest.mark.slow
def test_nodes_that_go_on_when_the_budget_is_used_up_are_found() -> None:
    with Cluster(nodes=1, slots=2, without="job.budget") as cluster, expect_failure():
        proofs.end_used_up(cluster)


def test_costs_that_only_their_leader_knows_are_found(tmp_path: Path) -> None:
    with patch.object(CostLog, "sync", nothing), expect_failure():
        logs.test_costs_are_what_earlier_leaders_have_made_durable(tmp_path)


def test_costs_that_count_again_when_redis_delivers_them_again_are_found(tmp_path: Path) -> None:
    def added(log: CostLog, spent: Spent) -> bool:
        log._nano[spent.spender] = log._nano.get(spent.spender, 0) + spent.nano
        return True

    with patch.object(CostLog, "_count", added), expect_failure():
        logs.test_cost_that_is_reported_again_counts_once(tmp_path)


def test_budget_that_nobody_compares_with_the_cost_is_found() -> None:
    from parallelrun_core.wire.progress import Progress
    from tests.unit.master import test_budget as budgets

    with patch.object(Progress, "is_used_up", property(always(False))), expect_failure():
        budgets.test_budget_closes_once_and_ends_the_job_when_nothing_runs_any_more()
