"""The part of an owner's quota that one node may use."""

from __future__ import annotations

import random

import pytest

from parallelrun_agent.policy.slot_quota import OwnersNode, most_workers
from parallelrun_core.store.slot_quotas import SlotQuota
from tests.unit.agent.test_fair_share import Node, SimulatedJob


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_of_all_nodes_are_the_quota(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [OwnersNode(f"n{i}", rng.randrange(1, 9), rng.randrange(3)) for i in range(rng.randrange(1, 12))]
    quota = SlotQuota(slots=rng.randrange(0, 30), nodes=rng.choice([None, 1, 3]))
    parts = [most_workers(quota, each.node, nodes) for each in nodes]
    assert sum(part or 0 for part in parts) == quota.slots
    assert sum(bool(part) for part in parts) <= (quota.nodes or len(nodes))


def test_a_quota_of_nodes_stays_on_those_where_the_owner_works() -> None:
    nodes = [OwnersNode("a", 4, 0), OwnersNode("b", 4, 2), OwnersNode("c", 4, 0)]
    assert [most_workers(SlotQuota(nodes=1), each.node, nodes) for each in nodes] == [0, None, 0]
    assert most_workers(SlotQuota(), "a", nodes) is None


def test_a_node_that_others_have_not_seen_yet_has_no_part() -> None:
    assert most_workers(SlotQuota(slots=4), "new", [OwnersNode("a", 4, 4)]) == 0
    assert most_workers(SlotQuota(nodes=2), "new", [OwnersNode("a", 4, 4)]) is None


def test_an_owner_has_no_more_workers_than_their_quota_also_when_it_gets_smaller() -> None:
    node = Node.of(8)
    jobs = [SimulatedJob(name, "anna", ready=10_000, batch_s=1.0, init_s=0.1) for name in ("one", "two")]
    node.jobs = [jobs[0]]
    node.sharing.most_workers = {"anna": 3}
    while node.now < 20:
        node.step()
        assert node.busy() <= 3
    assert node.busy() == 3
    node.jobs.append(jobs[1])
    node.sharing.most_workers = {"anna": 2}
    while node.now < 60:
        node.step()
    assert node.busy() == 2
    assert min(job.done for job in jobs) > 5, "both of her jobs go on"
    other = SimulatedJob("third", "bert", ready=10_000, batch_s=1.0, init_s=0.1)
    other.now = node.now
    node.jobs.append(other)
    while node.now < 90:
        node.step()
    assert (len(jobs[0].workers) + len(jobs[1].workers), len(other.workers)) == (2, 6), "the rest is for others"
