"""Whole jobs with faults, for the tests and for the long run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.chaos.faults import FaultInjector
from tests.chaos.oracle import ENTRY_SCRIPT, Finding, examine
from tests.chaos.places import OnDisk, Place
from tests.cluster import Cluster

MINI_BATCHES = 1500
ITEMS = 4
LEASE_S = 0.4
_ITEM_S = 0.005


@dataclass(frozen=True)
class Report:
    """What happened in one job with faults."""

    finding: Finding
    faults: Counter[str]
    retried: int
    lost: int


def kills(
    *,
    seed: int,
    without: str = "",
    everything: bool = False,
    place: Place | None = None,
    mini_batches: int = MINI_BATCHES,
    chooses_size: bool = False,
) -> Report:
    """Workers past init() and agents are killed, agents are paused beyond their lease, and Redis is killed twice.

    With `everything`, master, leader, concatenator and API are killed, too.

    Args:
        place: where inputs and outputs are.
        chooses_size: the job cuts what it hasn't cut yet by how long mini-batches take (`mini_batch_size: auto`).
    """
    place = place or OnDisk()
    cluster = Cluster(nodes=2, slots=2, lease_s=LEASE_S, leader_s=1, without=without, api=everything)
    place.prepare(cluster)
    # A mini-batch should take a fifth of its timeout.
    size = {"mini_batch_size": "auto", "run_invocation_timeout": 1.5} if chooses_size else {"mini_batch_size": ITEMS}
    with cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        job = cluster.submit(
            place.script,
            inputs=place.inputs(cluster, mini_batches * ITEMS),
            run_max_try=1000,
            lost_leases=1000,
            environment_variables={"MARKS": str(marks), "ITEM_S": str(_ITEM_S if chooses_size else 0)},
            **size,
            **place.settings(),
        )
        with FaultInjector(
            cluster, seed=seed, marks=marks, redis_restarts=2, pauses=True, all_roles=everything
        ) as injector:
            result = cluster.result(job, timeout_s=600)
        assert result.state is JobState.COMPLETED, result.failure
        finding = examine(cluster.folder(job), result, place.rows(result.output))
        strays = place.strays(mini_batches * ITEMS)
        return Report(
            replace(finding, strange=finding.strange + strays),
            injector.count,
            result.progress.retried,
            result.progress.lost,
        )


def kills_in_init(*, seed: int) -> Report:
    """Workers are killed before they are through init(); only 20, or none would get through on a busy machine."""
    with Cluster(nodes=2, slots=2, lease_s=LEASE_S) as cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        job = cluster.submit(
            ENTRY_SCRIPT,
            inputs=cluster.files(200 * ITEMS),
            mini_batch_size=ITEMS,
            run_max_try=3,
            lost_leases=1000,
            environment_variables={"MARKS": str(marks), "INIT_S": "0.1"},
        )
        with FaultInjector(cluster, seed=seed, marks=marks, past_init=False, agents=False, most_kills=20) as injector:
            result = cluster.result(job, timeout_s=110)
        assert result.state is JobState.COMPLETED, result.failure
        tries = {outcome.tries for outcome in read_decisions(cluster.folder(job).path)}
        assert tries == {1}, "a death in init() was charged to a mini-batch"
        return Report(
            examine(cluster.folder(job), result), injector.count, result.progress.retried, result.progress.lost
        )
