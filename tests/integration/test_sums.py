"""What has failed adds up, whatever the kind of failure, wherever it is told."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun import Client
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

EVERY_KIND = textwrap.dedent("""
    import os, time
    from parallelrun.script import ItemError
    class OutOfMemoryError(RuntimeError): pass
    OutOfMemoryError.__module__ = "torch"
    def run(mini_batch):
        numbers = [int(os.path.basename(path)[5:12]) for path in mini_batch]
        if 3 in numbers: raise ValueError("bad")
        if 13 in numbers: os._exit(4)
        if 23 in numbers: os.kill(os.getpid(), 11)
        if 33 in numbers: time.sleep(1000)
        if 43 in numbers: raise OutOfMemoryError("CUDA out of memory")
        if 53 in numbers: return [ItemError("empty") if number == 53 else number for number in numbers]
        if 63 in numbers: open("/nowhere")
        if 73 in numbers: return None
        if 83 in numbers: return numbers[:1]
        return numbers
""")
MOST_KINDS = 5
"""The result has the costliest ones."""
TABLE = textwrap.dedent("""
    def run(mini_batch):
        if (mini_batch.number == 7).any(): raise ValueError("bad")
        return mini_batch
""")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(slots=2, api=True) as running:
        yield running


def check(cluster: Cluster, job: str, *, items: int, lost: int, short: int, estimated: int = 0) -> None:
    """Compare what each of those says who count items: result, output, list, report, REST and command line."""
    result = cluster.result(job, 180)
    progress, logs = result.progress, cluster.folder(job).logs
    assert progress.done + progress.failed == progress.scheduled
    assert (progress.items_lost, progress.items_short, progress.items_estimated) == (lost, short, estimated)
    assert progress.items_done + lost + short == progress.items_found == items
    assert sum(each.items for each in result.errors) == lost - estimated or len(result.errors) == MOST_KINDS
    assert len(cluster.output(result)) == progress.rows == progress.items_done
    with (logs / "failed_items.csv").open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert len(listed) == (lost - estimated) + (1 if estimated else 0), "what nobody has counted has one line"
    with (logs / "sys" / "job_report" / "processed_mini-batches.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Failed"] and not row["Status"].startswith("PART_")]
    last = {row["Mini-batch Id"]: row for row in rows}
    assert sum(int(row["Succeeded"]) for row in last.values()) == progress.items_done
    assert sum(int(row["Failed"]) for row in last.values()) == lost - estimated + short

    about = "about " if estimated else ""
    sentence = f"completed, but {about}{lost:,} of {about}{items:,} items failed ("
    assert (logs / "job_result.txt").read_text().startswith(f"Job {job} has {sentence}")
    with Client(cluster.api_url) as client:
        shown = client.jobs.get(job)
        assert (shown.progress.items_done, shown.progress.items_failed) == (progress.items_done, lost + short)
        assert len(list(client.jobs.failed_items(job))) == len(listed)
    assert f"\n{sentence}" in f"\n{parallelrun(cluster, 'job', 'stream', job).stderr}"
    printed = json.loads(parallelrun(cluster, "job", "show", job, "-o", "json").stdout)
    assert printed["progress"]["items_failed"] == lost + short


def parallelrun(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "parallelrun", *arguments, "--url", cluster.api_url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_sums_of_every_kind_of_failure_of_files(cluster: Cluster) -> None:
    job = cluster.submit(
        EVERY_KIND, inputs=cluster.files(100), mini_batch_size=10, run_max_try=1, run_invocation_timeout=3
    )
    check(cluster, job, items=100, lost=10 * 7 + 1, short=9)


def test_sums_of_every_kind_of_failure_of_items_that_are_run_apart(cluster: Cluster) -> None:
    job = cluster.submit(
        EVERY_KIND, inputs=cluster.files(100), mini_batch_size=10, run_max_try=1, run_invocation_timeout=3,
        on_failure="isolate",
    )  # fmt: skip
    # 73: nothing is a list of rows, so that nobody can say which item is to blame.
    check(cluster, job, items=100, lost=7 + 10, short=9)


@pytest.mark.parametrize("on_failure, lost", [("isolate", 1), ("mini_batch", 10)])
def test_sums_of_tables_of_which_one_can_not_be_read(
    cluster: Cluster, tmp_path: Path, on_failure: str, lost: int
) -> None:
    for name in range(4):
        lines = [json.dumps({"number": 20 * name + row}) for row in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "2.jsonl").write_text('{"number": 1}\n{"number\n' + '{"number": 2}\n' * 18)
    job = cluster.submit(
        TABLE, mini_batch_size="rows:10", run_max_try=1, on_failure=on_failure,
        inputs={"data": {"path": str(tmp_path), "transformations": ["read_json_lines"]}},
    )  # fmt: skip
    check(cluster, job, items=80, lost=lost + 10, short=0, estimated=10)


def test_sums_of_partitions_name_the_partition_that_has_failed(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("shop,number\n" + "".join(f"s{each % 10},{each}\n" for each in range(200)))
    job = cluster.submit(
        TABLE, inputs={"rows": {"path": str(path), "transformations": ["read_delimited"]}}, partition_keys=["shop"],
        run_max_try=1,
    )  # fmt: skip
    check(cluster, job, items=200, lost=20, short=0)
    with (cluster.folder(job).logs / "failed_items.csv").open(newline="") as file:
        assert [row["Item"] for row in csv.DictReader(file)] == [
            f"row {each} of the partition s7" for each in range(1, 21)
        ]
    assert "mini_batch_size" not in (cluster.folder(job).logs / "job_result.txt").read_text()
