"""Partition keys of tables that are not partitioned on disk, through a whole cluster, while leaders die and sleep."""

from __future__ import annotations

import csv
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.test_reopen import reopen

pytestmark = pytest.mark.integration

ROWS = 3000
STORES = ("", "1", "10", "2")
BRANDS = ("", "A", "a", 'q"uo,\nte')
ECHO = textwrap.dedent("""
    def run(mini_batch, context):
        assert list(mini_batch.index) == list(range(len(mini_batch)))
        store, brand = context.partition_key_value.values()
        assert mini_batch.store.isna().all() if store is None else (mini_batch.store == int(store)).all()
        assert mini_batch.brand.isna().all() if brand is None else (mini_batch.brand == brand).all()
        assert str(mini_batch.store.dtype) == ("float64" if store is None else "int64")
        return [f"{context.minibatch_index} {store} {brand!r} {n}" for n in mini_batch.n]
""")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, slots=2, leader_s=1) as running:
        yield running


def table(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    for number in range(2):
        with (folder / f"{number}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["n", "store", "brand"])
            writer.writerows(
                [n, STORES[n % 4], BRANDS[n // 4 % 4]] for n in range(number * ROWS // 2, (number + 1) * ROWS // 2)
            )
    steps = [{"read_delimited": {"support_multi_line": True}}]
    return {"inputs": {"data": {"path": str(folder), "transformations": steps}}, "partition_keys": ["store", "brand"]}


def expected() -> list[str]:
    """Every row, group by group, in the order of the keys."""
    combinations = [(s or None, b or None) for s in STORES for b in BRANDS]
    return [
        f"{number} {store} {brand!r} {n}"
        for number, (store, brand) in enumerate(combinations)
        for n in range(ROWS)
        if (STORES[n % 4] or None, BRANDS[n // 4 % 4] or None) == (store, brand)
    ]


def check(cluster: Cluster, job: str) -> JobResult:
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == expected()
    cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
    assert not list(cluster.folder(job).path.glob("shuffl*")), "the groups of a job that is done are removed"
    return result


def shuffles(cluster: Cluster) -> list[psutil.Process]:
    """The processes that group rows for the leaders of this cluster."""
    found = []
    with suppress(psutil.NoSuchProcess):  # it ended between two looks
        for child in psutil.Process(cluster.processes["master"].pid).children(recursive=True):
            if "parallelrun_worker.shuffle" in child.cmdline():
                found.append(child)
    return found


def test_all_rows_of_a_combination_come_together_with_the_types_of_the_table(cluster: Cluster) -> None:
    settings = table(cluster.home / "calm")
    size = sum(path.stat().st_size for path in (cluster.home / "calm").iterdir())
    job = cluster.submit(ECHO, **settings)
    result = check(cluster, job)
    assert result.progress.scheduled == len(STORES) * len(BRANDS)
    assert (result.progress.items_done, result.progress.rows) == (ROWS, ROWS)
    assert (result.progress.bytes_shuffled, result.progress.bytes_to_shuffle) == (size, size)
    (log,) = (cluster.folder(job).logs / "sys").glob("master_role.*.txt")
    assert f"Shuffling input 0 by its partition keys: {size:,} of {size:,} bytes." in log.read_text()


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "paused"])
def test_a_leader_that_goes_in_the_middle_of_a_shuffle_costs_nothing(cluster: Cluster, is_killed: bool) -> None:
    settings = table(cluster.home / f"killed-{is_killed}")
    job = cluster.submit(ECHO, **settings)
    cluster.until(lambda: bool(shuffles(cluster)), "rows are being grouped")
    (child,) = shuffles(cluster)
    child.suspend()  # it doesn't get to the end
    (leader,) = cluster.leaders()
    if is_killed:
        leader.kill()
        child.resume()
        child.wait(20)  # nobody waits for what it does
        check(cluster, job)
    else:
        leader.suspend()
        groups = cluster.folder(job).path / "shuffled.0"
        cluster.until(lambda: groups.exists() or cluster.folder(job).result() is not None, "its successor has groups")
        child.resume()
        leader.resume()
        check(cluster, job)
        cluster.until(lambda: not child.is_running(), "the child of the one that slept has ended")
    assert cluster.registry.status(job).term >= 2


@pytest.mark.parametrize("point", ["shuffle.before_rename", "shuffle.after_rename"])
def test_a_leader_that_dies_around_the_moment_that_counts_costs_nothing(point: str, tmp_path: Path) -> None:
    with Cluster(nodes=1, slots=2, leader_s=1, failpoints=f"{point}=kill:{tmp_path / 'reached'}") as cluster:
        job = cluster.submit(ECHO, **table(cluster.home / "in"))
        check(cluster, job)
        assert (tmp_path / "reached").exists()
        assert cluster.registry.status(job).term >= 2


def test_a_job_that_is_canceled_meanwhile_leaves_nobody_grouping(cluster: Cluster) -> None:
    job = cluster.submit(ECHO, **table(cluster.home / "canceled"))
    cluster.until(lambda: bool(shuffles(cluster)), "rows are being grouped")
    (child,) = shuffles(cluster)
    child.suspend()
    cluster.registry.move(job, JobState.CANCELED)
    assert cluster.result(job).state is JobState.CANCELED
    cluster.until(lambda: not child.is_running(), "the child has ended")


def test_keys_that_are_no_columns_fail_the_job_with_those_that_are(cluster: Cluster) -> None:
    settings = table(cluster.home / "wrong") | {"partition_keys": ["Store"]}
    result = cluster.result(cluster.submit(ECHO, **settings))
    assert result.failure is not None
    assert result.failure.code == "INVALID_INPUT"
    assert "there is no column 'Store' to group by; the table has n, store, brand" in result.failure.summary


def test_what_failed_is_tried_anew_with_the_same_rows_whatever_became_of_the_files(cluster: Cluster) -> None:
    switch = cluster.home / "switch"
    switch.touch()
    script = ECHO + textwrap.dedent("""
        import os
        echo = run
        def run(mini_batch, context):
            if os.path.exists(os.environ["SWITCH"]) and context.partition_key_value["store"] == "10":
                raise ValueError("not today")
            return echo(mini_batch, context)
    """)
    variables = {"SWITCH": str(switch)}
    job = cluster.submit(script, **table(cluster.home / "again"), run_max_try=1, environment_variables=variables)
    first = cluster.result(job)
    assert (first.state, first.progress.done, first.progress.failed) == (JobState.COMPLETED, 12, 4)
    assert cluster.output(first) == [line for line in expected() if line.split()[1] != "10"]
    switch.unlink()
    shutil.rmtree(cluster.home / "again")
    reopen(cluster, job, retry_failed=True)
    check(cluster, job)
