"""What scripts write into folders of a store is there when their job has completed, and nothing of failed tries."""

from __future__ import annotations

import time
from typing import Any

import pytest

from parallelrun import Client
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.storage.conftest import Bucket, Store
from tests.integration.test_reopen import submit
from tests.object_servers import Moto, ObjectServer
from tests.twins import sabotage

pytestmark = pytest.mark.integration

WRITES = """
import os, signal, sys, time
from azureml_user.parallel_run import EntryScript

out = EntryScript().output_dir

def init():
    os.makedirs(os.path.join(out, "deep", "er"), exist_ok=True)

def run(mini_batch):
    for path in mini_batch:
        name = os.path.basename(path)
        first = os.path.join({marks!r}, name)
        is_first = not os.path.exists(first)
        open(first, "w").close()
        number = int(name[5:12])
        if is_first and number % 5 in (0, 1):
            with open(os.path.join(out, "deep", "bad-" + name), "w") as file:
                file.write("of a try that failed")
            if number % 5:
                raise ValueError("the first try fails")
            file = open(os.path.join(out, "deep", "worse-" + name), "w")
            os.kill(os.getpid(), signal.SIGKILL)
        with open(os.path.join(out, "deep", "er", name), "w") as file:
            file.write("x" * 100 + name)
        time.sleep({pause})
    return [os.path.basename(path) for path in mini_batch]

def shutdown():
    with open(os.path.join(out, "end-" + EntryScript().agent_name + ".txt"), "w") as file:
        file.write("end")
"""


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


def below(bucket: Bucket, folder: str) -> set[str]:
    start = f"{bucket.prefix}/{folder}/"
    keys: list[str] = bucket.keys()
    return {key.removeprefix(start) for key in keys if key.startswith(start)}


def submitted(cluster: Cluster, bucket: Bucket, count: int, *, pause: float = 0.0, **fields: Any) -> str:
    marks = cluster.home / "marks"
    marks.mkdir(exist_ok=True)
    script = WRITES.format(marks=str(marks), pause=pause)
    given = {"output": bucket.url("out"), "mini_batch_size": 1, **fields}
    return cluster.submit(script, inputs=cluster.files(count), **given)


def prove_that_files_are_there_when_the_job_is(bucket: Bucket, without: str = "") -> None:
    with Cluster(slots=2, without=without) as cluster:
        job_id = submitted(cluster, bucket, 30)
        result = cluster.result(job_id)
        there = below(bucket, "out")  # at once: nothing may come later
        assert result.state is JobState.COMPLETED
        names = {f"file-{number:07d}.txt" for number in range(30)}
        assert {name.removeprefix("deep/er/") for name in there if name.startswith("deep/er/")} == names
        assert not {name for name in there if "bad-" in name or "worse-" in name}
        rest = {name for name in there if not name.startswith("deep/er/")}
        assert "parallel_run_step.txt" in rest
        assert all(name.startswith("end-") for name in rest - {"parallel_run_step.txt"})
        assert len(rest) >= 2, "what a worker has written in its shutdown() is there, too"
        rows = bucket.content("out/parallel_run_step.txt").decode().split()
        assert sorted(rows) == sorted(names)
        assert result.output == bucket.url("out/parallel_run_step.txt")


def test_a_completed_job_has_all_files_and_none_of_a_try_that_failed(bucket: Bucket) -> None:
    prove_that_files_are_there_when_the_job_is(bucket)


def test_without_waiting_for_uploads_files_are_missing(bucket: Bucket) -> None:
    with sabotage.expect_failure():
        prove_that_files_are_there_when_the_job_is(bucket, without="uploads.awaited")


WRITES_AND_FAILS = """
import os, signal
from azureml_user.parallel_run import EntryScript

out = EntryScript().output_dir

def run(mini_batch):
    for path in mini_batch:
        number = int(os.path.basename(path)[5:12])
        is_bad = number in (3, 14)
        name = {name}
        with open(os.path.join(out, ("bad-" if is_bad else "good-") + name), "w") as file:
            file.write(str(number))
        if number == 3:
            raise ValueError("a bad item")
        if number == 14:
            os.kill(os.getpid(), signal.SIGKILL)
    return [os.path.basename(path) for path in mini_batch]
"""


def test_items_are_run_apart_of_a_script_that_writes_into_a_store(bucket: Bucket) -> None:
    script = WRITES_AND_FAILS.format(name="os.path.basename(path)")
    with Cluster(slots=2) as cluster:
        job_id = cluster.submit(
            script, inputs=cluster.files(20), mini_batch_size=10, run_max_try=1, on_failure="isolate",
            output=bucket.url("apart"),
        )  # fmt: skip
        result = cluster.result(job_id)
        assert (result.state, result.progress.items_failed, result.progress.rows) == (JobState.COMPLETED, 2, 18)
        good = [number for number in range(20) if number not in (3, 14)]
        files = below(bucket, "apart") - {"parallel_run_step.txt"}
        assert files == {f"good-file-{number:07d}.txt" for number in good}
        for number in good:
            assert bucket.content(f"apart/good-file-{number:07d}.txt") == str(number).encode()


def test_parts_that_write_the_same_file_count_for_nothing(bucket: Bucket) -> None:
    with Cluster(slots=1) as cluster:
        job_id = cluster.submit(
            WRITES_AND_FAILS.format(name="'same'"), inputs=cluster.files(10), mini_batch_size=10, run_max_try=1,
            on_failure="isolate", output=bucket.url("same"),
        )  # fmt: skip
        result = cluster.result(job_id)
        (decision,) = read_decisions(cluster.folder(job_id).path)
        assert decision.failure is not None
        assert "could not be run apart: two parts have written 'good-same'" in decision.failure.message
        assert result.progress.items_failed == 10
        assert below(bucket, "same") <= {"parallel_run_step.txt"}


def test_what_a_command_writes_is_there_when_it_has_succeeded_and_only_then(bucket: Bucket) -> None:
    bucket.put("in/words.txt", b"some words")
    command = (
        "cp ${{inputs.words}} ${{outputs.folder}}/copy && echo one > ${{outputs.file}} && echo kept > outputs/kept && "
        "exit ${{inputs.code}}"
    )
    given = {"words": {"path": bucket.url("in/words.txt"), "type": "uri_file"}}
    with Cluster() as cluster:
        for code, state in ((1, JobState.FAILED), (0, JobState.COMPLETED)):
            outputs = {"folder": {"path": bucket.url("f")}, "file": {"path": bucket.url("g/x.txt"), "type": "uri_file"}}
            job_id = cluster.submit_command(
                command, inputs={**given, "code": code}, outputs=outputs, output=bucket.url("out")
            )
            result = cluster.result(job_id)
            assert result.state is state, result.failure
            there = [below(bucket, folder) for folder in ("f", "g", "out")]
            assert there == ([{"copy"}, {"x.txt"}, {"kept"}] if state is JobState.COMPLETED else [set(), set(), set()])
    assert bucket.content("f/copy") == b"some words"


def test_what_cannot_be_written_fails_its_mini_batch_with_the_words_of_the_store(bucket: Bucket) -> None:
    with Cluster(slots=1) as cluster:
        job_id = submitted(
            cluster, bucket, 2, output="s3://there-is-no-such-bucket/out", output_action="summary_only", run_max_try=2
        )
        cluster.result(job_id)
        failures = [each.failure for each in read_decisions(cluster.folder(job_id).path)]
        assert [failure.category for failure in failures if failure] == ["OUTPUT_UNWRITABLE"] * 2
        assert all("NoSuchBucket" in failure.message for failure in failures if failure)


def test_nothing_is_lost_with_an_agent(bucket: Bucket) -> None:
    with Cluster(slots=2, lease_s=2.0) as cluster:
        job_id = submitted(cluster, bucket, 40, pause=0.05)
        cluster.until(lambda: len(below(bucket, "out")) > 5, "some files are there")
        cluster.kill("node000")
        time.sleep(0.1)  # what it had on its way ends
        cluster.start("node000")
        assert cluster.result(job_id, 120).state is JobState.COMPLETED
        there = below(bucket, "out")
        assert {name for name in there if name.startswith("deep/er/")} == {
            f"deep/er/file-{number:07d}.txt" for number in range(40)
        }
        assert len(bucket.content("out/parallel_run_step.txt").split()) == 40


def test_a_job_that_goes_on_replaces_its_own_rows_and_makes_lost_ones_again(bucket: Bucket) -> None:
    rows = "out/parallel_run_step.txt"
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        job, switch, _ = submit(cluster, mini_batch_size=1, run_max_try=1, output=bucket.url("out"))
        assert cluster.result(job).progress.failed == 10
        assert len(bucket.content(rows).split()) == 90
        switch.unlink()
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
        client.jobs.retry(job)
        assert client.jobs.wait(job).progress.done == 100
        whole = bucket.content(rows)
        assert len(whole.split()) == 100
        bucket.put(rows, b"of somebody else")
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
        client.jobs.resume(job)
        failed = client.jobs.wait(job, raise_on_failure=False)
        assert failed.failure is not None
        assert "never overwritten" in failed.failure.summary
        assert bucket.content(rows) == b"of somebody else"
        ObjectStorage().discard([bucket.url(rows)])
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
        client.jobs.resume(job)
        assert client.jobs.wait(job).state == "completed"
        assert bucket.content(rows) == whole
