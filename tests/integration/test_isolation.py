"""Jobs whose mini-batches have items that fail: those alone are lost, the others' rows are there once and in order."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator

import pytest

from parallelrun import Client, Conflict
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
HEALING = textwrap.dedent("""
    import os
    from pathlib import Path
    NOTES = Path(os.environ["NOTES"])
    def run(mini_batch):
        bad = {int(number) for number in (NOTES / "bad").read_text().split()}
        numbers = [int(os.path.basename(path)[5:12]) for path in mini_batch]
        with open(NOTES / "runs", "a") as file: file.write(f"{numbers}\\n")
        if os.environ["HOW"] == "die" and bad & set(numbers): os._exit(3)
        if bad & set(numbers): raise ValueError("bad")
        rows = [f"{number}{os.environ['END']}" for number in numbers]
        if os.environ["HOW"] == "table":
            import pandas as pd
            return pd.DataFrame({"number": numbers, "text": rows})
        return rows
""")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(slots=2, api=True) as running:
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


@pytest.mark.parametrize(
    "on_failure, thresholds, failure",
    [
        ("isolate", {"error_threshold": 4, "mini_batch_error_threshold": 0}, ""),
        ("isolate", {"error_threshold": 3}, "4 items failed, more than error_threshold (3)."),
        ("mini_batch", {"error_threshold": 40, "mini_batch_error_threshold": 4}, ""),
        ("mini_batch", {"error_threshold": 39}, "40 items failed, more than error_threshold (39)."),
        (
            "mini_batch",
            {"mini_batch_error_threshold": 3},
            "4 mini-batches failed, more than mini_batch_error_threshold",
        ),
    ],
)
def test_isolation_counts_what_is_lost_against_thresholds_and_no_more(
    cluster: Cluster, on_failure: str, thresholds: dict[str, int], failure: str
) -> None:
    script = "import os\ndef run(mini_batch):\n    for path in mini_batch:\n"
    script += "        if path[-7:-4] in ('003', '014', '025', '051'): raise ValueError('bad')\n    return mini_batch\n"
    job = cluster.submit(
        script, inputs=cluster.files(60), mini_batch_size=10, run_max_try=1, on_failure=on_failure, **thresholds
    )
    result = cluster.result(job, 120)
    assert result.state is (JobState.FAILED if failure else JobState.COMPLETED)
    assert (result.failure.summary if result.failure else "").startswith(failure)
    if not failure:
        assert result.progress.items_lost == (4 if on_failure == "isolate" else 40)
        assert result.progress.items_done + result.progress.items_lost == result.progress.items_found == 60


def test_isolation_counts_nothing_of_a_script_that_aggregates(cluster: Cluster) -> None:
    job = cluster.submit(AGGREGATING, inputs=cluster.files(60), mini_batch_size=20, run_max_try=1, on_failure="isolate")
    result = cluster.result(job)
    assert (result.progress.failed, result.progress.items_lost, cluster.output(result)) == (1, 20, ["20", "20"])
    assert "run apart: run() returned 1 row for 10 items" in result.errors[0].message


def test_isolation_is_not_done_for_jobs_of_earlier_releases(cluster: Cluster) -> None:
    job = cluster.submit(SCRIPT.replace("45", "99"), inputs=cluster.files(60), mini_batch_size=30, run_max_try=1)
    result = cluster.result(job)
    assert (result.state, result.progress.failed) == (JobState.FAILED, 2), "on_failure is not set in what they stored"


def check_retry_of_items(cluster: Cluster, how: str = "raise", *, end: str = "", **settings: object) -> list[list[int]]:
    """Items that have failed alone are tried again, twice; returns the calls of run() of the last time."""
    notes = cluster.home / f"notes-{how}-{len(end)}-{len(settings)}"
    notes.mkdir()
    (notes / "bad").write_text("7 20 21 39 58")
    job = cluster.submit(
        HEALING, inputs=cluster.files(60), mini_batch_size=12, run_max_try=1, on_failure="isolate",
        environment_variables={"NOTES": str(notes), "HOW": how, "END": end}, **settings,
    )  # fmt: skip
    first = cluster.result(job, 120)
    assert (first.progress.done, first.progress.items_failed, first.progress.rows) == (5, 5, 55)
    with Client(cluster.api_url) as client:
        for bad, rows in (("21", 59), ("", 60)):
            cluster.until(lambda: not cluster.registry.is_active(job), "the job is retired", 60)
            (notes / "bad").write_text(bad)
            (notes / "runs").unlink()
            client.jobs.retry(job)
            result = cluster.result(job, 120)
            assert (result.state, result.output) == (JobState.COMPLETED, first.output)
            progress = result.progress
            assert (progress.done, progress.failed, progress.items_failed, progress.rows) == (5, 0, 60 - rows, rows)
            assert len([*client.jobs.failed_items(job)]) == 60 - rows
            calls = [[*map(int, line[1:-1].split(","))] for line in (notes / "runs").read_text().splitlines()]
        cluster.until(lambda: not cluster.registry.is_active(job), "the job is retired", 60)
        with pytest.raises(Conflict, match="nothing has failed in any mini-batch"):
            client.jobs.retry(job)
    check_rows(cluster.output(result), how, end)
    return calls


def check_rows(rows: list[str], how: str, end: str) -> None:
    """Every item has its row once, in order, between those of its neighbours."""
    if how == "table":
        rows = [row.replace(" ", ",").partition(",")[2].strip('"') for row in rows if "number" not in row]
    assert [row for row in rows if row] == [
        line for number in range(60) for line in f"{number}{end}".splitlines() if line
    ]


@pytest.mark.parametrize("how", ["raise", "die", "table"])
def test_isolation_lets_only_the_failed_items_be_tried_again(cluster: Cluster, how: str) -> None:
    assert check_retry_of_items(cluster, how, append_row_dataframe_header=how == "table") == [[21]]


def test_isolation_runs_all_items_again_where_rows_cannot_be_told_apart(cluster: Cluster) -> None:
    calls = check_retry_of_items(cluster, end="\nmore")
    assert sorted(number for call in calls for number in call) == [*range(12, 24)], (
        "the mini-batch of the item that was left"
    )
