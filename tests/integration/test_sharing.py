"""Jobs that share nodes: a small one gets its part of the slots while a long one runs."""

from __future__ import annotations

import textwrap

import pytest

from parallelrun_core.store.registry import Registry
from parallelrun_core.store.usage import Usage
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

LONG = textwrap.dedent("""
    import os, time
    def run(mini_batch):
        time.sleep(0.5)  # work, long beside what changing workers takes
        return [os.path.basename(path) for path in mini_batch]
""")


def check_a_small_job_behind_a_long_one(without: str = "") -> None:
    """A job of four files ends while one of a thousand mini-batches runs, which loses no row and no try by that."""
    with Cluster(nodes=1, slots=2, without=without) as cluster:
        long = cluster.submit(LONG, inputs=cluster.files(1000), mini_batch_size=1)
        registry = Registry(cluster.redis)
        cluster.until(lambda: registry.status(long).progress.done > 10, "the long job runs", 120)
        small = cluster.submit(LONG, inputs=cluster.files(4), mini_batch_size=1)
        result = cluster.result(small, 60)
        assert result.state is JobState.COMPLETED
        assert len(cluster.output(result)) == 4
        progress = registry.status(long).progress
        assert progress.done < 900, "it has not waited for the end of the long one"
        assert (progress.failed, progress.retried) == (0, 0), "a worker was taken back when it had ended what it ran"
        assert cluster.logged("node000", "worker_taken_back") >= 1
        registry.move(long, JobState.CANCELED)
        cluster.result(long)


def test_the_use_of_owners_is_on_record_and_counts() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        for owner in ("anna", "bert"):
            cluster.submit(LONG, inputs=cluster.files(100), mini_batch_size=1, owner=owner)
        usage = Usage(cluster.redis)
        cluster.until(lambda: {week.owner for week in usage.weeks()} == {"anna", "bert"}, "it is reported", 120)
        assert all(week.used.slot_s > 1 for week in usage.weeks())


def test_a_small_job_does_not_wait_for_a_long_one() -> None:
    check_a_small_job_behind_a_long_one()
