"""The log tree of real jobs, read as the reference's tuning guide tells users to read it (reference §5)."""

from __future__ import annotations

import csv
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from parallelrun_core.adviser.reading.evidence import evidence_of
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from parallelrun_master.reports.columns import COLUMNS
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SECRET = "canary-5f3a"


def has_rows(path: Path) -> bool:
    return path.exists() and bool(rows_of(path))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def tries_of(logs: Path) -> list[dict[str, str]]:
    return rows_of(logs / "sys" / "job_report" / "processed_mini-batches.csv")


def ids(rows: list[dict[str, str]], *statuses: str) -> set[int]:
    return {int(row["Mini-batch Id"]) for row in rows if row["Mini-batch Id"] and row["Status"] in statuses}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, slots=2, leader_s=4.0) as running:
        yield running


SCRIPT = textwrap.dedent("""
    import logging, os, sys, time
    from azureml_user.parallel_run import EntryScript
    def init():
        EntryScript().logger.info("init")
    def run(mini_batch):
        number = int(os.path.basename(mini_batch[0])[5:12])
        logging.info("mini-batch %s", number)
        if number == 3:
            raise ValueError("can't read it, token " + os.environ["TOKEN"])
        if number == 5:
            time.sleep(1000)
        if number == 7:
            open("logs/mine.txt", "w").write("7")
        return mini_batch
""")


VANISHING = textwrap.dedent("""
    import os
    def init():
        pass
    def run(mini_batch):
        (path,) = mini_batch
        if os.path.basename(path) == "file-0000003.txt":
            os.rename(os.path.dirname(path), os.path.dirname(path) + ".away")
        return [open(path).read() + "row"]
""")


def test_a_job_whose_input_vanishes_while_it_runs_says_loudly_what_it_has_lost() -> None:
    """By default, no number of failures fails a job."""
    with Cluster(slots=1) as one_worker:
        job = one_worker.submit(VANISHING, inputs=one_worker.files(100), mini_batch_size=1, run_max_try=1)
        result = one_worker.result(job)
        lines = (one_worker.folder(job).logs / "job_result.txt").read_text().splitlines()
        (overview,) = one_worker.folder(job).logs.glob("job_progress_overview.*.txt")
        told = overview.read_text().splitlines()  # nodes may leave, and say so, before or after the end
    lost = "97 of 100 items failed (97 %): FileNotFoundError in entry.py:9"
    assert (result.state, result.progress.failed) == (JobState.COMPLETED, 97)
    assert lines[0] == f"Job {job} has completed, but {lost}."
    assert result.warnings[0].startswith(f"{lost}; first: RUN_EXCEPTION: FileNotFoundError: ")
    assert any(line.endswith(f"The job has completed, but {lost}.") for line in told)


EVERY_WAY = textwrap.dedent("""
    import os, time
    def run(mini_batch):
        number = int(os.path.basename(mini_batch[0])[5:12]) // 3
        if number == 0: raise ValueError("bad")
        if number == 1: os._exit(4)
        if number == 2: os.kill(os.getpid(), 11)
        if number == 3: time.sleep(1000)
        if number == 4: return None
        if number == 5: return mini_batch[:1]
        if number == 6: raise SystemExit
        return mini_batch
""")


def test_the_items_of_every_way_to_fail_add_up(cluster: Cluster) -> None:
    job = cluster.submit(
        EVERY_WAY, inputs=cluster.files(30), mini_batch_size=3, run_max_try=1, run_invocation_timeout=3
    )  # fmt: skip
    result = cluster.result(job)
    progress = result.progress
    assert (result.state, progress.done, progress.failed) == (JobState.COMPLETED, 4, 6)
    assert (progress.items_done, progress.items_failed, progress.items_short) == (10, 20, 2)
    assert progress.items_done + progress.items_failed == progress.items_found == 30
    assert sum(each.items for each in result.errors) == 15, "the five costliest of six kinds, three items each"
    last = {row["Mini-batch Id"]: row for row in tries_of(cluster.folder(job).logs) if row["Failed"]}
    assert sum(int(row["Succeeded"]) + int(row["Failed"]) for row in last.values()) == 30
    text = (cluster.folder(job).logs / "job_result.txt").read_text()
    assert text.startswith(f"Job {job} has completed, but 18 of 30 items failed (60 %): ")


def test_the_same_error_of_many_files_is_one_in_the_result(cluster: Cluster) -> None:
    job = cluster.submit(
        "def run(mini_batch):\n    return [open(path + '.missing') for path in mini_batch]",
        inputs=cluster.files(150), mini_batch_size=1, run_max_try=2, error_threshold=149,
    )  # fmt: skip
    result = cluster.result(job)
    assert result.failure is not None
    (error,) = result.failure.errors
    assert error.count > 150, "each has two tries"
    assert error.message.startswith("FileNotFoundError")
    assert 'all come from File "entry.py", line 2' in (cluster.folder(job).logs / "job_result.txt").read_text()


def test_a_table_job_reports_the_bytes_of_its_ranges(cluster: Cluster) -> None:
    size, ranges = 2_000_000, 8
    folder = cluster.home / "ranges"
    folder.mkdir()
    (folder / "data.csv").write_text("text\n" + f"{'x' * 98}\n\n" * (size // 100))
    (folder / "MLTable").write_text("type: mltable\npaths:\n- file: ./data.csv\ntransformations:\n- read_delimited\n")
    job = cluster.submit(
        "import time\ndef run(mini_batch):\n    time.sleep(0.02)\n    return list(mini_batch.text)",
        inputs={"data": {"path": str(folder), "type": "mltable", "mode": "direct"}}, mini_batch_size=size // ranges,
        max_concurrency_per_instance=1,
    )  # fmt: skip
    assert cluster.result(job).state is JobState.COMPLETED
    logs = cluster.folder(job).logs
    ran = {row["Mini-batch Id"]: row for row in tries_of(logs) if row["Status"] == "RUN_DONE"}
    assert len(ran) == ranges + 1, "the header makes it a little longer"
    read = [float(ran[str(number)]["Read (MB)"]) * (1 << 20) for number in range(ranges)]
    # A block is read before and after each, and with the first one on each of the two workers some modules as well;
    # whoever is the first of all reads a part of the table for its types.
    assert all(each >= size // ranges for each in read), read
    assert sorted(read)[ranges // 2] < size // ranges + 150_000, read
    assert all(float(row["Peak Memory (MB)"]) > 10 for row in ran.values())


def test_the_tree_of_a_job_with_failures(cluster: Cluster) -> None:
    job = cluster.submit(
        SCRIPT, inputs=cluster.files(20), mini_batch_size=1, run_max_try=2, run_invocation_timeout=3,
        environment_variables={"TOKEN": SECRET}, mini_batch_error_threshold=1,
    )  # fmt: skip
    result = cluster.result(job)
    assert result.state is JobState.FAILED
    assert result.failure is not None
    assert result.failure.code == "THRESHOLD_CROSSED"
    assert {error.category: error.count for error in result.failure.errors} == {"RUN_EXCEPTION": 2, "RUN_TIMEOUT": 2}
    logs = cluster.folder(job).logs

    rows = tries_of(logs)
    assert tuple(rows[0]) == COLUMNS
    tried = defaultdict(list)
    for row in rows:
        if row["Mini-batch Id"] and row["Status"].startswith("RUN"):
            tried[int(row["Mini-batch Id"])].append((row["Picked Count"], row["Status"]))
    assert tried[3] == [("1", "RUN_EXCEPTION"), ("2", "RUN_EXCEPTION")]
    assert tried[5] == [("1", "RUN_TIMEOUT"), ("2", "RUN_TIMEOUT")]
    assert all(tried[number] == [("1", "RUN_DONE")] for number in tried if number not in (3, 5))
    assert len(ids(rows, "RUN_DONE")) == result.progress.done
    assert ids(rows, "LOAD_DONE") == set(tried)
    (row,) = (row for row in rows if row["Mini-batch Id"] == "3" and row["Picked Count"] == "2" and row["Succeeded"])
    assert (row["Total"], row["Succeeded"], row["Failed"], row["Error Category"]) == ("1", "0", "1", "RUN_EXCEPTION")
    assert "file-0000003.txt" in row["Mini-batch Detail"]
    assert row["Process"].startswith("node00")

    sums = rows_of(logs / "sys" / "job_report" / "node_summary.csv")
    assert sum(int(row["Tries"]) for row in sums) == sum(map(len, tried.values()))
    assert sum(int(row["RUN_DONE"]) for row in sums) == result.progress.done
    assert sum(int(row["RUN_TIMEOUT"]) for row in rows_of(logs / "sys/job_report/process_summary.csv")) == 2

    told = (logs / "job_result.txt").read_text()
    assert "Error category: RUN_E" in told or "Error category: RUN_T" in told
    assert "2 x RUN_EXCEPTION: ValueError: can't read it" in told
    assert "Open next: user/error/node" in told
    assert "THRESHOLD_CROSSED" in (logs / "job_error.txt").read_text()
    assert "2 x RUN_TIMEOUT" in (logs / "user" / "error.txt").read_text()
    assert "processed_mini-batches.csv" in (logs / "readme.txt").read_text()
    assert list(logs.glob("job_progress_overview.??????????.txt"))
    for name in ("job_result.txt", "job_error.txt", "user/error.txt", "sys/job_report/processed_mini-batches.csv"):
        assert SECRET not in (logs / name).read_text(), name
    assert SECRET not in "".join(path.read_text() for path in (logs / "user" / "error").rglob("*.txt"))

    (leader,) = (logs / "sys").glob("master_role.*.txt")
    lines = [line.split("|", 4) for line in leader.read_text().splitlines()]
    assert all(len(line) == 5 for line in lines)
    said = [line[4] for line in lines]
    folder = str(cluster.files(20))
    order = [
        "Start scheduling.",
        "The task provider type is FileDatasetProvider.",
        f"Input folders ['{folder}'], from index 0.",
        f"Scheduling tasks for input 0: {folder}.",
        "Save checkpoint for folder 0, offset 20, task_id 20, total_items 20, finished=True.",
    ]
    places = [said.index(line) for line in order]
    assert places == sorted(places)
    assert any(
        "setting job stage to FIRST_TASK_SCHEDULED, reason: The first task created at 2" in line for line in said
    )
    assert "THRESHOLD_CROSSED" in (logs / "sys" / "error" / leader.name).read_text()

    assert [path.read_text() for path in (logs / "user" / "files").rglob("mine.txt")] == ["7"]
    assert len(list((logs / "user" / "entry_script_log").rglob("process*.log.txt"))) >= 2
    assert any("Mini-batch 7: run() took" in path.read_text() for path in (logs / "sys" / "node").rglob("process*.txt"))


def test_with_leaders_that_sleep_and_die_the_report_has_each_try_once(cluster: Cluster) -> None:
    script = textwrap.dedent("""
        import os, time
        def run(mini_batch):
            time.sleep(0.02)
            marker = os.path.join(os.environ["MARKS"], os.path.basename(mini_batch[0]))
            if mini_batch[0].endswith("7.txt") and not os.path.exists(marker):
                open(marker, "w").close()
                raise ValueError("the first time")
            return mini_batch
    """)
    marks = cluster.home / "marks"
    marks.mkdir()
    job = cluster.submit(
        script, inputs=cluster.files(600), mini_batch_size=1, environment_variables={"MARKS": str(marks)}
    )
    folder = cluster.folder(job)
    cluster.until(lambda: cluster.registry.status(job).progress.decided > 20, "some are decided")
    cluster.until(lambda: len(cluster.leaders()) == 1, "the leader of the job before has ended")
    (paused,) = cluster.leaders()
    paused.suspend()
    cluster.until(lambda: cluster.registry.status(job).term > 1, "another one leads")
    paused.resume()  # it has rows to tell of that the other one tells of, too
    cluster.until(lambda: cluster.logged("master", "fenced") >= 1, "it has noticed")
    for leader in cluster.leaders():
        with suppress(psutil.NoSuchProcess):  # the one that has noticed
            leader.kill()
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED
    rows = tries_of(folder.logs)
    runs = [(row["Mini-batch Id"], row["Picked Count"]) for row in rows if row["Status"].startswith("RUN")]
    assert len(runs) == len(set(runs)) == 660
    assert ids(rows, "RUN_DONE") == set(range(600)) == {each.mini_batch for each in read_decisions(folder.path)}
    assert ids(rows, "RUN_EXCEPTION") == {number for number in range(600) if number % 10 == 7}
    assert len(list((folder.logs / "sys").glob("master_role.*.txt"))) >= 2
    nodes = rows_of(folder.logs / "sys" / "job_report" / "node_summary.csv")
    assert sum(int(row["Tries"]) for row in nodes) == 660
    assert sum(int(row["RUN_DONE"]) for row in nodes) == 600


COMPLETES = textwrap.dedent("""
    import os, sys, time
    import subprocess
    print("imported")
    def init():
        subprocess.run(["echo", "from a child"])
    def run(mini_batch):
        sys.stderr.write("an error\\n")
        options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
        while not os.path.exists(options["--gate"]):
            time.sleep(0.01)
        return [f"{options['--logging_level']} {options['--mine']}"] * len(mini_batch)
    def shutdown():
        open(os.path.join(os.environ["AZUREML_BI_OUTPUT_PATH"], "bye.txt"), "a").close()
""")


def test_a_job_that_completes_tells_of_its_workers_and_nodes(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    job = cluster.submit(
        COMPLETES, inputs=cluster.files(20), mini_batch_size=1, program_arguments=f"--mine 'a b' --gate {gate}",
        logging_level="DEBUG", profiling_module="cProfile", resource_monitor_interval=5,
    )  # fmt: skip
    perf = cluster.folder(job).logs / "sys" / "perf"
    used = partial(perf.glob, "*/node_resource_usage.csv")
    cluster.until(lambda: any(map(has_rows, used())), "a node has written what it used")
    gate.touch()
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    assert set(cluster.output(result)) == {"DEBUG a b"}
    logs = cluster.folder(job).logs
    phases = {row["Status"] for row in tries_of(logs) if not row["Mini-batch Id"]}
    assert phases == {"ENTRY_SCRIPT_INIT_START", "ENTRY_SCRIPT_INIT_DONE", "ENTRY_SCRIPT_SHUTDOWN_DONE"}
    assert not (logs / "job_error.txt").exists()
    assert not (logs / "user" / "error.txt").exists()
    # A worker that was still starting when the job ended has said nothing.
    assert any("imported" in path.read_text() for path in (logs / "user" / "stdout").rglob("*.txt"))
    assert any("from a child" in path.read_text() for path in (logs / "sys" / "node").rglob("*.stdout.txt"))
    assert list((logs / "sys" / "node").rglob("process*.profile"))
    assert (cluster.folder(job).outputs / "bye.txt").exists()


def test_short_returns_are_counted_and_not_tried_again(cluster: Cluster) -> None:
    script = textwrap.dedent("""
        import os
        def run(mini_batch):
            number = int(os.path.basename(mini_batch[0])[5:12])
            return {0: [], 4: mini_batch[:1], 8: mini_batch * 2, 12: None}.get(number, mini_batch)
    """)
    job = cluster.submit(script, inputs=cluster.files(20), mini_batch_size=4, run_max_try=2)
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED
    progress = result.progress
    assert (progress.done, progress.failed, progress.retried) == (4, 1, 1)
    assert (progress.items_done, progress.items_failed, progress.rows) == (9, 11, 13)
    rows = [row for row in tries_of(cluster.folder(job).logs) if row["Status"].startswith("RUN")]
    found = {(row["Mini-batch Id"], row["Picked Count"]): (row["Succeeded"], row["Error Category"]) for row in rows}
    assert found == {
        ("0", "1"): ("0", ""), ("1", "1"): ("1", ""), ("2", "1"): ("4", ""), ("4", "1"): ("4", ""),
        ("3", "1"): ("0", "BAD_RETURN"), ("3", "2"): ("0", "BAD_RETURN"),
    }  # fmt: skip


def test_advice_rests_on_what_a_job_writes_anyway(cluster: Cluster) -> None:
    script = textwrap.dedent("""
        import time
        def init():
            time.sleep(0.3)
        def run(mini_batch):
            time.sleep(0.02)
            return mini_batch
    """)
    job = cluster.submit(script, inputs=cluster.files(40), mini_batch_size=2, max_concurrency_per_instance=2)
    result = cluster.result(job)

    evidence = evidence_of(cluster.folder(job))
    schedule = TrySchedule(evidence)

    assert result.started is not None
    assert evidence.seconds == pytest.approx(result.ended - result.started)
    assert evidence.tries.items.sum() == 40
    assert 0 <= (evidence.first_listed_s or -1) < schedule.first_try_s
    inits = [init for init in evidence.inits if init.is_done]
    assert {f"{init.node}/{init.process}" for init in inits} >= set(evidence.processes)
    assert min(init.seconds for init in inits) >= 0.3
    assert all(use.cpus for use in evidence.uses.values())
    assert abs(schedule.unexplained_s) < 0.5 * evidence.seconds
