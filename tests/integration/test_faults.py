"""Mini-batches that misbehave: each is tried as often as it may be, told with its cause, and hurts no other."""

from __future__ import annotations

import textwrap
import time

import pytest

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

MISBEHAVING = textwrap.dedent("""
    import ctypes, os, signal, subprocess, sys, time
    def run(mini_batch):
        name = os.path.basename(mini_batch[0])
        if name.endswith("0000013.txt"):
            os.abort()
        if name.endswith("0000029.txt"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = subprocess.Popen(["sleep", "1000"])
            open(os.environ["CHILDREN"], "a").write(f"{child.pid}\\n")
            time.sleep(1000)
        if name.endswith("0000041.txt"):
            raise ValueError("what a bad file")
        if name.endswith("0000055.txt"):
            return None
        if name.endswith("0000060.txt"):
            sys.exit(3)
        return [os.path.basename(path) for path in mini_batch]
""")


def test_each_kind_of_failure_is_tried_as_often_as_allowed_and_told_with_its_cause() -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        children = cluster.home / "children"
        job = cluster.submit(
            MISBEHAVING,
            inputs=cluster.files(100),
            mini_batch_size=1,
            run_max_try=3,
            run_invocation_timeout=1,
            environment_variables={"CHILDREN": str(children)},
        )
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        decisions = {outcome.mini_batch: outcome for outcome in read_decisions(cluster.folder(job).path)}
        assert len(decisions) == 100
        failed = {number: outcome for number, outcome in decisions.items() if outcome.status == "failed"}
        assert sorted(failed) == [13, 29, 41, 55, 60]
        assert {outcome.tries for outcome in failed.values()} == {3}
        causes = {number: outcome.failure.category for number, outcome in failed.items() if outcome.failure}
        assert causes == {
            13: "SIGNAL", 29: "RUN_TIMEOUT", 41: "RUN_EXCEPTION", 55: "BAD_RETURN", 60: "RUN_EXCEPTION",
        }  # fmt: skip
        raised = failed[41].failure
        assert raised is not None
        assert "what a bad file" in raised.traceback
        assert "entry.py" in raised.traceback
        assert "parallelrun_worker" not in raised.traceback
        assert "SIGABRT" in (failed[13].failure or raised).message
        assert cluster.output(result) == [
            f"file-{number:07d}.txt" for number in range(100) if number not in (13, 29, 41, 55, 60)
        ]
        assert result.progress.retried == 10
        # The children of the worker that hung are gone with it.
        pids = children.read_text().split()
        assert len(pids) == 3
        assert not any(_is_running(pid) for pid in pids)
        text = (cluster.folder(job).logs / "job_result.txt").read_text()
        assert "RUN_TIMEOUT" in text
        assert "what a bad file" in text


def _is_running(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_init_that_raises_everywhere_fails_the_job_fast_with_the_users_traceback() -> None:
    script = "def init():\n    raise RuntimeError('no model here')\ndef run(mini_batch):\n    return mini_batch\n"
    with Cluster(nodes=2, slots=2) as cluster:
        result = cluster.result(cluster.submit(script, inputs=cluster.files(20)), timeout_s=60)
        assert result.state is JobState.FAILED
        assert result.failure is not None
        assert result.failure.code == "INIT_FAILED"
        assert "no model here" in result.failure.first_cause
        assert "raise RuntimeError" in result.failure.traceback


def test_a_threshold_that_is_crossed_fails_the_job_and_publishes_nothing() -> None:
    script = "def run(mini_batch):\n    raise ValueError(mini_batch[0])\n"
    with Cluster() as cluster:
        job = cluster.submit(script, inputs=cluster.files(50), mini_batch_error_threshold=1, run_max_try=1)
        result = cluster.result(job)
        assert result.state is JobState.FAILED
        assert result.failure is not None
        assert result.failure.code == "THRESHOLD_CROSSED"
        assert result.progress.failed >= 2
        assert not result.output
        assert list(cluster.folder(job).outputs.iterdir()) == []


def test_a_job_that_returns_no_row_fails() -> None:
    with Cluster() as cluster:
        result = cluster.result(cluster.submit("def run(mini_batch):\n    return []\n", inputs=cluster.files(20)))
        assert result.state is JobState.FAILED
        assert result.failure is not None
        assert result.failure.code == "NO_ROWS"


def test_a_summary_only_job_needs_no_rows() -> None:
    with Cluster() as cluster:
        job = cluster.submit(
            "def run(mini_batch):\n    return []\n", inputs=cluster.files(20), output_action="summary_only"
        )
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert result.progress.items_failed == 20


def test_an_empty_input_fails_the_job_with_its_path() -> None:
    with Cluster() as cluster:
        folder = cluster.files(0)
        job = cluster.submit("def run(mini_batch):\n    return []\n", inputs=folder)
        result = cluster.result(job)
        assert result.state is JobState.FAILED
        assert result.failure is not None
        assert str(folder) in result.failure.summary
        (folder / "late.txt").touch()
        with pytest.raises(Conflict, match=r"would fail again at once: .* submit a new job when they have files"):
            Reopenings(cluster.root, cluster.redis).resume(job, accept_changed_inputs=False)


def test_the_output_does_not_wait_for_a_slow_shutdown() -> None:
    script = textwrap.dedent("""
        import os, time
        def run(mini_batch):
            return mini_batch
        def shutdown():
            output = os.path.join(os.environ["AZUREML_BI_OUTPUT_PATH"], "parallel_run_step.txt")
            until = time.monotonic() + 30
            while not os.path.exists(output):
                assert time.monotonic() < until
                time.sleep(0.02)
            open(os.environ["SEEN"], "w").close()
    """)
    with Cluster(slots=1) as cluster:
        seen = cluster.home / "seen"
        job = cluster.submit(script, inputs=cluster.files(20), environment_variables={"SEEN": str(seen)})
        assert cluster.result(job).state is JobState.COMPLETED
        assert seen.exists()


def test_cancel_ends_running_work_at_once_and_publishes_nothing() -> None:
    script = "import time\ndef run(mini_batch):\n    time.sleep(1000)\n"
    with Cluster() as cluster:
        job = cluster.submit(script, inputs=cluster.files(20), run_invocation_timeout=1000)
        cluster.until(lambda: cluster.registry.status(job).progress.running == 2, "two mini-batches run")
        cluster.registry.move(job, JobState.CANCELED)
        result = cluster.result(job, timeout_s=10)
        assert result.state is JobState.CANCELED
        assert not result.output


def test_a_job_that_waits_behind_another_one_is_not_taken_for_one_that_is_stuck() -> None:
    script = "import time\ndef run(mini_batch):\n    time.sleep(1000)\n"
    with Cluster(slots=1) as cluster:
        first = cluster.submit(script, inputs=cluster.files(1), run_invocation_timeout=1000)
        cluster.until(lambda: all(info.busy for info, _ in cluster.known_nodes.all()), "the slot is taken")
        second = cluster.submit(script, inputs=cluster.files(2), progress_update_timeout=1)
        cluster.until(lambda: cluster.registry.status(second).progress.published > 0, "it waits for its turn")
        until = time.monotonic() + 4
        while time.monotonic() < until:
            assert cluster.registry.state(second) is JobState.PROCESSING
            time.sleep(0.05)
        for job in (first, second):
            cluster.registry.move(job, JobState.CANCELED)
        assert {cluster.result(job).state for job in (first, second)} == {JobState.CANCELED}


@pytest.mark.parametrize("nodes, slots", [(1, 2), (2, 1)], ids=["on_its_node", "on_another_node"])
def test_a_slow_mini_batch_holds_no_other_back(nodes: int, slots: int) -> None:
    script = textwrap.dedent("""
        import os, time
        def run(mini_batch):
            if mini_batch[0].endswith("0000500.txt"):
                time.sleep(4)
                return [f"{time.time()} slow"]
            return [f"{time.time()} quick" for _ in mini_batch]
    """)
    with Cluster(nodes=nodes, slots=slots) as cluster:
        result = cluster.result(cluster.submit(script, inputs=cluster.files(3000), mini_batch_size=1))
        lines = [line.split() for line in cluster.output(result)]
        slow = next(float(stamp) for stamp, kind in lines if kind == "slow")
        assert max(float(stamp) for stamp, kind in lines if kind == "quick") < slow - 1
