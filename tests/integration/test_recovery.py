"""A job goes on by itself, whichever of the processes that look after it dies, and whatever Redis forgets."""

from __future__ import annotations

import os
import signal
import textwrap

import pytest

from parallelrun_core.folder.record_log import read_records
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.wire.outcome import decode_list
from parallelrun_core.wire.states import JobState
from tests.chaos.oracle import ENTRY_SCRIPT, examine
from tests.cluster import Cluster

pytestmark = pytest.mark.integration


def submit(cluster: Cluster, mini_batches: int = 800) -> str:
    marks = cluster.home / "marks"
    marks.mkdir(exist_ok=True)
    return cluster.submit(
        ENTRY_SCRIPT,
        inputs=cluster.files(mini_batches * 4),
        mini_batch_size=4,
        environment_variables={"MARKS": str(marks)},
    )


def decided(cluster: Cluster, job: str) -> int:
    return cluster.registry.status(job).progress.decided


def check(cluster: Cluster, job: str) -> None:
    result = cluster.result(job, timeout_s=60)
    assert result.state is JobState.COMPLETED, result.failure
    finding = examine(cluster.folder(job), result)
    assert finding.is_clean, finding


def test_a_killed_leader_is_replaced() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        for leader in cluster.leaders():
            leader.kill()
        check(cluster, job)
        assert cluster.registry.status(job).term >= 2


def test_a_killed_master_is_replaced_with_its_leaders() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        cluster.kill("master")
        cluster.start("master")
        check(cluster, job)


def test_a_paused_leader_that_wakes_beside_its_successor_does_no_harm() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster, mini_batches=1500)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        (paused,) = cluster.leaders()
        paused.suspend()
        before = decided(cluster, job)
        cluster.until(lambda: decided(cluster, job) > before + 50, "its successor decides")
        paused.resume()
        check(cluster, job)
        assert cluster.logged("master", "fenced") >= 1


def test_an_input_that_blocks_whoever_reads_it_holds_up_no_other_job() -> None:
    """As a file on a disk that is away; here a pipe, which is opened only where the check for that is left out."""
    with Cluster(nodes=1, slots=2, leader_s=1, without="paths.ordinary") as cluster:  # for two jobs at a time
        folder, pipe = cluster.home / "table", cluster.home / "pipe"
        folder.mkdir()
        (folder / "a.csv").write_text("a\n1\n")
        os.mkfifo(pipe)
        (folder / "b.csv").symlink_to(pipe)
        table: dict[str, object] = {"data": {"path": str(folder), "transformations": ["read_delimited"]}}
        blocked = cluster.submit(ENTRY_SCRIPT, inputs=table, mini_batch_size="rows:1")
        cluster.until(lambda: cluster.logged("master", "leader_hangs") >= 2, "two leaders have hung")
        check(cluster, submit(cluster, mini_batches=20))
        cluster.registry.move(blocked, JobState.CANCELED)
        assert cluster.result(blocked).state is JobState.CANCELED


def test_a_master_that_is_told_to_stop_hands_over_at_once() -> None:
    with Cluster(nodes=1, slots=2, leader_s=300) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        cluster.processes["master"].terminate()
        cluster.processes["master"].wait(20)
        cluster.start("master")
        check(cluster, job)


def test_a_concatenation_waits_for_a_concatenator() -> None:
    with Cluster(nodes=1, slots=2) as cluster:
        cluster.kill("concatenator")
        job = submit(cluster, mini_batches=50)
        cluster.until(lambda: cluster.registry.state(job) is JobState.FINALIZING, "all is decided")
        cluster.start("concatenator")
        check(cluster, job)


def test_a_redis_that_forgets_everything_costs_no_row() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 100, "some are decided")
        forget_everything(cluster)
        check(cluster, job)


def test_a_redis_that_forgets_everything_and_lives_on_costs_no_row() -> None:
    with Cluster(nodes=1, slots=2, leader_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 100, "some are decided")
        cluster.redis.flushall()
        check(cluster, job)
        assert cluster.logged("master", "job_adopted") == 1


def forget_everything(cluster: Cluster) -> None:
    """Kill Redis, and start it without anything that it had kept."""
    cluster.redis_server.kill()
    for path in cluster.redis_server.folder.rglob("*"):
        if path.is_file() and path.suffix != ".sock" and path.name != "log":
            path.unlink()
    cluster.redis_server.start()


def test_what_was_finished_when_redis_forgot_everything_is_not_run_again() -> None:
    script = textwrap.dedent("""
        import os
        def run(mini_batch):
            names = [os.path.basename(path) for path in mini_batch]
            with open(os.environ["RUNS"], "a") as runs:
                runs.write(names[0] + "\\n")
            return names
    """)
    with Cluster(slots=2) as cluster:
        cluster.kill("node000")
        runs = cluster.home / "runs"
        variables = {"RUNS": str(runs)}
        job = cluster.submit(script, inputs=cluster.files(20), mini_batch_size=1, environment_variables=variables)
        folder = cluster.folder(job)

        def finished() -> int:
            journals = folder.journals.iterdir()
            return sum(len(decode_list(raw)) for journal in journals for _, raw in read_records(journal))

        queue = LeaderQueue(cluster.redis, job)
        cluster.until(lambda: queue.checkpoint() == 20, "all are published")
        leaders = cluster.leaders()
        cluster.kill("master")
        for leader in leaders:  # it would go on without the master
            leader.kill()
        cluster.start("node000")
        cluster.until(lambda: finished() == 20, "all are finished, and nobody decides")
        forget_everything(cluster)
        cluster.start("master")
        result = cluster.result(job)
        assert cluster.logged("master", "journals_adopted") == 1
        assert result.state is JobState.COMPLETED, result.failure
        assert (result.progress.done, result.progress.rows) == (20, 20)
        assert cluster.output(result) == [f"file-{number:07d}.txt" for number in range(20)]
        assert sorted(runs.read_text().splitlines()) == cluster.output(result)


def test_everything_killed_at_once_goes_on_when_it_is_started_again() -> None:
    with Cluster(nodes=2, slots=2, leader_s=1, lease_s=1) as cluster:
        job = submit(cluster)
        cluster.until(lambda: decided(cluster, job) > 50, "some are decided")
        for process in cluster.processes.values():
            os.kill(process.pid, signal.SIGKILL)
        cluster.redis_server.kill()
        cluster.redis_server.start()
        for name, process in list(cluster.processes.items()):
            process.wait()
            cluster.start(name)
        check(cluster, job)
