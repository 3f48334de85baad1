"""Jobs whose mini-batches have items that fail: those alone are lost, the others' rows are there once and in order."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator

import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SCRIPT = textwrap.dedent("""
    import os, time
    def run(mini_batch, context):
        rows = []
        for path in mini_batch:
            number = int(os.path.basename(path)[5:12])
            if number % 20 == 7: raise ValueError(f"bad {path}")
            if number == 33: os._exit(5)
            if number == 45: time.sleep(1000)
            if number == 58: os.kill(os.getpid(), 11)
            rows.append(f"{number} {context.idempotency_key.partition(':')[2]}")
        return rows
""")
AGGREGATING = textwrap.dedent("""
    def run(mini_batch):
        if any(path.endswith("0000007.txt") for path in mini_batch): raise ValueError("bad")
        return [len(mini_batch)]
""")
GUILTY = [7, 27, 33, 45, 47, 58]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(slots=2) as running:
        yield running


def test_isolation_loses_nothing_but_the_guilty_items(cluster: Cluster) -> None:
    job = cluster.submit(
        SCRIPT, inputs=cluster.files(60), mini_batch_size=12, run_max_try=1, run_invocation_timeout=3,
        on_failure="isolate",
    )  # fmt: skip
    result = cluster.result(job, 120)
    rows = [line.split() for line in cluster.output(result)]
    assert [int(number) for number, _ in rows] == [number for number in range(60) if number not in GUILTY]
    assert len({key for number, key in rows if 12 <= int(number) < 24}) == 1, "nothing was run apart there"
    assert all("+" in key for number, key in rows if int(number) < 7), "each part has a key of its own"
    progress = result.progress
    assert (progress.done, progress.failed, progress.rows) == (5, 0, 54)
    assert (progress.items_done, progress.items_failed, progress.items_short) == (54, 6, 0)
    assert {each.category: each.items for each in result.errors} == {
        "RUN_EXCEPTION": 3, "EXITED": 1, "RUN_TIMEOUT": 1, "SIGNAL": 1,
    }  # fmt: skip
    logs = cluster.folder(job).logs
    with (logs / "failed_items.csv").open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert [int(row["Item"][-11:-4]) for row in listed] == GUILTY
    assert listed[0]["Place"] == "entry.py:7"
    with (logs / "sys" / "job_report" / "processed_mini-batches.csv").open(newline="") as file:
        statuses = [row["Status"] for row in csv.DictReader(file)]
    assert (statuses.count("RUN_DONE"), "PART_EXCEPTION" in statuses) == (5, True)


def test_isolation_counts_nothing_of_a_script_that_aggregates(cluster: Cluster) -> None:
    job = cluster.submit(AGGREGATING, inputs=cluster.files(60), mini_batch_size=20, run_max_try=1, on_failure="isolate")
    result = cluster.result(job)
    assert (result.progress.failed, result.progress.items_lost, cluster.output(result)) == (1, 20, ["20", "20"])
    assert "run apart: run() returned 1 rows for 10 items" in result.errors[0].message


def test_isolation_is_not_done_for_jobs_of_earlier_releases(cluster: Cluster) -> None:
    job = cluster.submit(SCRIPT.replace("45", "99"), inputs=cluster.files(60), mini_batch_size=30, run_max_try=1)
    result = cluster.result(job)
    assert (result.state, result.progress.failed) == (JobState.FAILED, 2), "on_failure is not set in what they stored"
