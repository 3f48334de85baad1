"""A job that chooses the size of its mini-batches: it measures and grows, whoever dies, and each row comes once."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import suppress
from functools import partial

import psutil
import pytest

from parallelrun import Client, InvalidRequest
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import read_closing, read_manifest
from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.message import decode
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.trials import MOST_TRIALS
from tests.chaos.oracle import ENTRY_SCRIPT, examine
from tests.cluster import Cluster
from tests.integration.test_reopen import reopen

pytestmark = pytest.mark.integration

TIMED = textwrap.dedent("""
    import math, os, time
    def run(mini_batch):
        names = [os.path.basename(path) for path in mini_batch]
        first, last, count = (float(os.environ[name]) for name in ("FIRST_S", "LAST_S", "COUNT"))
        for name in names:
            time.sleep(first * (last / first) ** (int(name[5:12]) / count))
        return names
""")
"""Items that take from FIRST_S to LAST_S."""


FEW_OPEN = textwrap.dedent("""
    import os, resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    def run(mini_batch):
        opened = [open(path) for path in mini_batch]
        names = [os.path.basename(file.name) for file in opened]
        for file in opened:
            file.close()
        return names
""")
"""Opens all files of a mini-batch at once, and may not have more than 200 open."""


def submit(cluster: Cluster, count: int, first_s: float, last_s: float | None = None, **settings: object) -> str:
    variables = {"FIRST_S": str(first_s), "LAST_S": str(last_s or first_s), "COUNT": str(count)}
    return cluster.submit(
        TIMED, inputs=cluster.files(count), mini_batch_size="auto", environment_variables=variables, **settings
    )


def sizes(folder: JobFolder) -> list[int]:
    """The items of each mini-batch that is in the manifest by now."""
    return [decode(entry.raw).items for entry in read_manifest(folder.path)]


def check(cluster: Cluster, job: str, count: int, timeout_s: float = 100) -> JobResult:
    """It ends with each row once."""
    result = cluster.result(job, timeout_s=timeout_s)
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == [f"file-{number:07d}.txt" for number in range(count)]
    assert result.progress.items_done == result.progress.items_scheduled == count
    assert (result.progress.items_ahead, result.progress.all_found) == (0, True)
    closing = read_closing(cluster.folder(job).path)
    assert closing is not None
    assert closing.items == count
    return result


def test_quick_items_come_in_ever_larger_mini_batches() -> None:
    with Cluster(slots=2) as cluster:
        job = submit(cluster, 8000, 0.001)
        progress = check(cluster, job, 8000).progress
        found = sizes(cluster.folder(job))
        assert found[:4] == [1] * 4
        assert max(found) > 200
        assert found[-1] < max(found), "a worker would be idle at the end"
        assert (progress.retried, progress.failed) == (0, 0)
        assert progress.chosen_size > 200
        assert progress.chosen_why.startswith("an item takes ")
        told = (cluster.folder(job).logs).glob("job_progress_overview.*.txt")
        assert "A mini-batch now has 8 items: an item takes " in "".join(path.read_text() for path in told)


def test_items_of_a_tenth_of_a_second_come_in_mini_batches_that_all_workers_share() -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        job = submit(cluster, 400, 0.1)
        result = check(cluster, job, 400)
        assert result.started is not None
        assert max(sizes(cluster.folder(job))) >= 8
        assert result.ended - result.started < 2 * 400 * 0.1 / 4


@pytest.mark.slow
def test_items_of_more_than_ten_seconds_stay_alone() -> None:
    with Cluster(slots=4) as cluster:
        job = submit(cluster, 18, 12.0)  # two more than are cut before anything is measured
        check(cluster, job, 18)
        assert sizes(cluster.folder(job)) == [1] * 18


@pytest.mark.slow
@pytest.mark.parametrize("first_s, last_s", [(0.001, 0.5), (0.5, 0.001)])
def test_items_that_become_slower_or_quicker_are_followed(first_s: float, last_s: float) -> None:
    with Cluster(slots=4) as cluster:
        # So that a mini-batch should take 2 s, and none may take ten.
        job = submit(cluster, 1000, first_s, last_s, run_invocation_timeout=10, run_max_try=1)
        check(cluster, job, 1000)
        assert max(sizes(cluster.folder(job))) > 8


def test_a_job_with_fewer_items_than_workers_gives_each_of_them_one() -> None:
    with Cluster(nodes=2, slots=4) as cluster:
        job = submit(cluster, 5, 0.01)
        check(cluster, job, 5)
        assert sizes(cluster.folder(job)) == [1] * 5


def kill_leaders(cluster: Cluster) -> None:
    for leader in cluster.leaders():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            leader.kill()


@pytest.mark.parametrize("victim", [None, "leader"])
def test_a_size_that_raises_an_error_costs_a_few_mini_batches(victim: str | None) -> None:
    with Cluster(slots=2, leader_s=1, lease_s=1) as cluster:
        job = cluster.submit(FEW_OPEN, inputs=cluster.files(20_000), mini_batch_size="auto", error_threshold=-1)
        if victim is not None:
            cluster.until(lambda: max(sizes(cluster.folder(job)), default=0) > 200, "more are tried than may be open")
            kill_leaders(cluster)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        done = cluster.output(result)
        assert len(set(done)) == len(done) == result.progress.items_done > 18_000
        too_many = [size for size in sizes(cluster.folder(job)) if size > 200]
        assert 0 < len(too_many) <= MOST_TRIALS * (1 if victim is None else 2), "another leader may try a few more"
        assert 60 < result.progress.chosen_size < 200
        assert result.progress.chosen_why.endswith("but larger ones have failed")


@pytest.mark.parametrize("victim", ["leader", "master", "redis"])
def test_who_dies_while_sizes_are_measured_costs_no_row(victim: str) -> None:
    with Cluster(slots=2, leader_s=1, lease_s=1) as cluster:
        job = submit(cluster, 600, 0.02)
        folder = cluster.folder(job)
        cluster.until(lambda: len(sizes(folder)) > 8, "the first wave is measured")
        if victim == "leader":
            kill_leaders(cluster)
        elif victim == "master":
            cluster.kill("master")
            cluster.start("master")
        else:
            cluster.redis_server.kill()
            cluster.redis_server.start()
        before = sizes(folder)
        check(cluster, job, 600)
        after = sizes(folder)
        assert after[: len(before)] == before, "what is recorded is cut so for ever"
        assert max(after) > 8


def test_a_redis_that_forgets_all_costs_no_row() -> None:
    with Cluster(slots=2, leader_s=1, lease_s=1) as cluster:
        job = submit(cluster, 600, 0.02)
        cluster.until(lambda: len(sizes(cluster.folder(job))) > 16, "some are measured")
        cluster.redis.flushall()
        check(cluster, job, 600)


def test_a_canceled_job_goes_on_with_the_sizes_that_it_had() -> None:
    with Cluster(slots=2) as cluster:
        job = submit(cluster, 600, 0.02)
        folder = cluster.folder(job)
        cluster.until(lambda: max(sizes(folder), default=0) > 16, "mini-batches are larger")
        cluster.registry.move(job, JobState.CANCELED)
        assert cluster.result(job).state is JobState.CANCELED
        before = sizes(folder)
        assert sum(before) < 600
        reopen(cluster, job, retry_failed=False)
        check(cluster, job, 600)
        after = sizes(folder)
        assert after[: len(before)] == before
        assert after[len(before)] > 8, "it measures again from the beginning"


def test_another_job_goes_on_with_what_one_has_cut_and_measured() -> None:
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        first = submit(cluster, 600, 0.02)
        cluster.until(lambda: max(sizes(cluster.folder(first)), default=0) > 16, "mini-batches are larger")
        client.jobs.cancel(first)
        client.jobs.wait(first, raise_on_failure=False)
        before = sizes(cluster.folder(first))
        assert sum(before) < 600
        settings = cluster.folder(first).record().job_spec().model_dump(mode="json", exclude_defaults=True)
        again = {**settings, "code": str(cluster.home / "code"), "resume_from": first}
        with pytest.raises(InvalidRequest, match="it is 5 here but 'auto' in job"):
            client.jobs.create({**again, "mini_batch_size": 5})
        second = client.jobs.create(again).id
        result = check(cluster, second, 600)
        after = sizes(cluster.folder(second))
        assert after[: len(before)] == before
        assert after[len(before)] > 8, "it measures again from the beginning"
        assert result.progress.resumed > 0


def _has_cut(folder: JobFolder, count: int) -> bool:
    return len(sizes(folder)) >= count or folder.result() is not None


def test_every_row_comes_once_however_often_leaders_die() -> None:
    with Cluster(slots=2, leader_s=0.5, lease_s=0.5) as cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        job = cluster.submit(
            ENTRY_SCRIPT, inputs=cluster.files(3000), mini_batch_size="auto",
            environment_variables={"MARKS": str(marks), "ITEM_S": "0.002"}, run_invocation_timeout=2.5,
            run_max_try=100, lost_leases=100,
        )  # fmt: skip
        for deaths in range(1, 6):
            enough = partial(_has_cut, cluster.folder(job), 20 * deaths)
            cluster.until(enough, "some are cut")
            kill_leaders(cluster)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        assert examine(cluster.folder(job), result).is_clean
        assert result.progress.items_done == 3000


def test_the_size_and_its_reason_are_shown_and_told() -> None:
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        job = submit(cluster, 600, 0.01)
        told = [event.data for event in client.jobs.events(job, last_event_id="0") if event.event == "size"]
        assert [told[0]["items"], told[1]["items"]] == [1, 8]
        assert "an item takes " in told[1]["why"]
        shown = client.jobs.get(job).progress
        assert (shown.all_found, shown.items_ahead, shown.items_scheduled) == (True, 0, 600)
        said = f"auto: {shown.chosen_size} items; an item takes "
        command = [sys.executable, "-m", "parallelrun", "job", "show", job, "--url", cluster.api_url]
        lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        assert any(line.startswith("mini-batch size:") and said in line for line in lines), lines
