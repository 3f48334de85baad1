"""Jobs that share nodes: a small one gets its part of the slots while a long one runs."""

from __future__ import annotations

import textwrap

import pytest

from parallelrun import Client
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.slot_quotas import SlotQuota, SlotQuotas
from parallelrun_core.store.usage import UsageStore
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

LONG = textwrap.dedent("""
    import os, time
    def run(mini_batch):
        time.sleep(0.5)  # work, long beside what changing workers takes
        return [os.path.basename(path) for path in mini_batch]
""")

SHORT = LONG.replace("0.5", "0.2")


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
        usage = UsageStore(cluster.redis)
        cluster.until(lambda: {week.owner for week in usage.weeks()} == {"anna", "bert"}, "it is reported", 120)
        assert all(week.used.slot_s > 1 for week in usage.weeks())


def test_a_small_job_does_not_wait_for_a_long_one() -> None:
    check_a_small_job_behind_a_long_one()


def check_a_paused_job(without: str = "") -> None:
    """A job that is paused begins nothing, says so, and loses no row; it goes on when somebody lets it, even if Redis
    has forgotten all."""
    with Cluster(nodes=2, slots=1, api=True, without=without) as cluster, Client(cluster.api_url) as client:
        job = cluster.submit(SHORT, inputs=cluster.files(60), mini_batch_size=1)
        registry = Registry(cluster.redis)
        cluster.until(lambda: registry.status(job).progress.done > 3, "it runs", 120)
        assert client.jobs.pause(job).paused
        cluster.until(lambda: not running_on(cluster, job), "no node runs anything of it", 60)
        decided = []
        for _ in range(2):  # while the first one runs, what was under way is recorded
            small = cluster.submit(SHORT, inputs=cluster.files(2), mini_batch_size=1)
            assert cluster.result(small, 120).state is JobState.COMPLETED, "its slots are for others"
            assert not running_on(cluster, job)
            decided.append(registry.status(job).progress.decided)
        assert decided[0] == decided[1] < 60, "nothing has begun"
        explanation = client.jobs.explain(job)
        assert (explanation.runs, explanation.conditions[0].name) == (False, "paused")
        cluster.redis.flushall()  # the folder has it
        cluster.until(lambda: registry.is_active(job) and registry.orders(job).is_paused, "it is paused again", 60)
        assert not client.jobs.resume(job).paused
        result = cluster.result(job, 180)
        assert result.state is JobState.COMPLETED
        assert len(cluster.output(result)) == 60
        assert (result.progress.failed, result.progress.retried) == (0, 0)


def running_on(cluster: Cluster, job_id: str) -> int:
    """Workers that a job has, by what nodes say."""
    return sum(info.workers.get(job_id, 0) for info, is_alive in cluster.known_nodes.all() if is_alive)


def test_a_job_that_is_paused_begins_nothing_and_loses_no_row() -> None:
    check_a_paused_job()


def test_a_job_that_is_made_urgent_gets_more_slots_while_it_runs() -> None:
    with Cluster(nodes=1, slots=4, api=True) as cluster, Client(cluster.api_url) as client:
        jobs = [
            cluster.submit(SHORT, inputs=cluster.files(4000), mini_batch_size=1, owner=owner)
            for owner in ("anna", "bert")
        ]
        cluster.until(lambda: [running_on(cluster, each) for each in jobs] == [2, 2], "they share the node", 120)
        assert client.jobs.prioritize(jobs[1], "urgent").priority == "urgent"
        cluster.until(lambda: [running_on(cluster, each) for each in jobs] == [1, 3], "the second has more", 120)
        for each in jobs:
            assert client.jobs.cancel(each).state == "canceled"
            cluster.result(each)


def test_an_owner_has_no_more_slots_than_their_quota() -> None:
    with Cluster(nodes=2, slots=2, api=True) as cluster, Client(cluster.api_url) as client:
        SlotQuotas(cluster.redis).replace({"anna": SlotQuota(slots=1)})
        client.quotas.set("anna", slots=1)
        first = cluster.submit(SHORT, inputs=cluster.files(3000), mini_batch_size=1, owner="anna")
        seen: list[int] = []

        def has_run() -> bool:
            seen.append(running_on(cluster, first))
            return cluster.registry.status(first).progress.done > 15

        cluster.until(has_run, "it runs", 120)
        assert max(seen) == 1
        second = cluster.submit(SHORT, inputs=cluster.files(4), mini_batch_size=1, owner="anna")
        others = cluster.submit(SHORT, inputs=cluster.files(40), mini_batch_size=1, owner="bert")
        assert cluster.result(others, 120).state is JobState.COMPLETED
        assert cluster.result(second, 180).state is JobState.COMPLETED, "the slot goes round among her jobs"
        assert running_on(cluster, first) <= 1
        client.jobs.cancel(first)
        cluster.result(first)
