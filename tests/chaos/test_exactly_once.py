"""Every row exactly once, in manifest order, whatever is killed; and proof that these tests could fail."""

from __future__ import annotations

import textwrap

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.chaos import scenarios
from tests.chaos.places import InStore
from tests.cluster import Cluster
from tests.object_servers import SeaweedFS, require_programs

pytestmark = pytest.mark.chaos


def test_every_row_once_while_workers_agents_and_redis_are_killed() -> None:
    report = scenarios.kills(seed=1)
    assert report.finding.is_clean, report
    assert report.faults["kills"] >= 10, "the test hardly killed anything"
    assert report.faults["redis_restarts"] == 2


def test_every_row_once_when_the_job_chooses_its_sizes_and_everybody_is_killed() -> None:
    report = scenarios.kills(seed=4, everything=True, chooses_size=True)
    assert report.finding.is_clean, report
    assert report.faults["kills"] >= 10, "the test hardly killed anything"
    assert report.faults["redis_restarts"] == 2


def test_every_row_and_file_once_when_all_of_it_is_in_a_store() -> None:
    require_programs()
    with SeaweedFS() as server:
        report = scenarios.kills(seed=3, place=InStore(server), mini_batches=900)
    assert report.finding.is_clean, report
    assert report.faults["kills"] >= 10, "the test hardly killed anything"
    assert report.faults["redis_restarts"] == 2


def test_without_the_fence_the_same_test_finds_a_duplicate() -> None:
    # Faults meet a commit by chance: a few seeds, of which one must show it.
    assert any(finds_a_duplicate(seed) for seed in range(1, 6))


def finds_a_duplicate(seed: int) -> bool:
    """The concatenator is the first to find it, and fails the job."""
    try:
        scenarios.kills(seed=seed, without="commit.fence")
    except AssertionError as failed:
        return "CONCATENATION_FAILED" in str(failed)
    return False


def test_kills_in_init_lose_nothing_and_charge_nobody() -> None:
    report = scenarios.kills_in_init(seed=2)
    assert report.finding.is_clean, report
    assert report.faults["kills"] >= 3


def test_look_ahead_burns_no_innocents_tries() -> None:
    script = textwrap.dedent("""
        import os
        def run(mini_batch):
            if int(mini_batch[0][-11:-4]) % 100 == 50:
                os.abort()
            return [os.path.basename(path) for path in mini_batch]
    """)
    with Cluster(nodes=2, slots=2) as cluster:
        job = cluster.submit(script, inputs=cluster.files(1000), mini_batch_size=1, run_max_try=3)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        decisions = list(read_decisions(cluster.folder(job).path))
        guilty = {outcome.mini_batch: outcome.tries for outcome in decisions if outcome.status == "failed"}
        assert guilty == dict.fromkeys(range(50, 1000, 100), 3)
        assert {outcome.tries for outcome in decisions if outcome.status == "done"} == {1}
