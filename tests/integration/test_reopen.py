"""A job that has ended goes on: what was never decided, or what failed, into the same output."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from parallelrun import Client, Conflict, InvalidRequest
from parallelrun_core.folder.decisions import read_outcomes
from parallelrun_core.folder.records import Reopening
from parallelrun_core.store.rq.wake import ask_for_leader
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

PICKY = textwrap.dedent("""
    import os
    def run(mini_batch):
        names = [os.path.basename(path) for path in mini_batch]
        if os.path.exists(os.environ["SWITCH"]) and any(int(name[5:12]) % 10 == 3 for name in names):
            raise ValueError("not today")
        with open(os.environ["RUNS"], "a") as file:
            file.write(names[0] + "\\n")
        return names
""")


def submit(cluster: Cluster, **settings: object) -> tuple[str, Path, Path]:
    switch, runs = cluster.home / "switch", cluster.home / "runs"
    switch.touch()
    runs.touch()
    variables = {"SWITCH": str(switch), "RUNS": str(runs)}
    job = cluster.submit(PICKY, inputs=cluster.files(100), environment_variables=variables, **settings)
    return job, switch, runs


def reopen(cluster: Cluster, job: str, **settings: object) -> None:
    """What the API does when it is asked to."""
    cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
    folder = cluster.folder(job)
    reopening = Reopening(generation=folder.generation() + 1, at=time.time(), **settings)  # type: ignore[arg-type]
    folder.reopen(reopening)
    cluster.registry.reopen(job, submitted=folder.record().submitted, generation=reopening.generation)
    ask_for_leader(cluster.redis, job, attempt=f"again-{reopening.generation}")


def test_retry_runs_only_what_failed_and_completes_the_output() -> None:
    with Cluster() as cluster:
        job, switch, runs = submit(cluster, mini_batch_size=1, run_max_try=1)
        first = cluster.result(job)
        assert first.state is JobState.COMPLETED
        assert (first.progress.done, first.progress.failed) == (90, 10)
        assert len(cluster.output(first)) == 90
        switch.unlink()
        runs.write_text("")
        reopen(cluster, job, retry_failed=True)
        second = cluster.result(job)
        assert second.state is JobState.COMPLETED
        assert (second.progress.done, second.progress.failed, second.progress.items_failed) == (100, 0, 0)
        assert cluster.output(second) == [f"file-{number:07d}.txt" for number in range(100)]
        assert len(runs.read_text().split()) == 10, "something was run that had succeeded"


def test_the_same_over_the_api_and_the_command_line() -> None:
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        job, switch, _ = submit(cluster, mini_batch_size=1, run_max_try=1)
        first = client.jobs.wait(job)
        assert first.progress.failed == 10
        with pytest.raises(Conflict):
            client.jobs.resume(job)
        with pytest.raises(InvalidRequest, match="mini-batch 4 has not failed"):
            client.jobs.retry(job, mini_batches=[3, 4])
        switch.unlink()
        answer = client.jobs.retry(job, mini_batches=[3])
        assert f"submit a new job with resume_from: {job}" in answer.notes[-1]
        assert client.jobs.wait(job).progress.failed == 9
        command = [sys.executable, "-m", "parallelrun", "job", "retry", job, "--failed", "--stream"]
        done = subprocess.run(
            [*command, "--url", cluster.api_url], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "runs the code as submitted on" in done.stderr
        assert client.jobs.get(job).progress.done == 100
        with pytest.raises(Conflict):
            client.jobs.retry(job)
        logs = cluster.folder(job).logs
        assert "10 x RUN_EXCEPTION: ValueError: not today" in (logs / "job_result.txt").read_text()
        report = (logs / "sys" / "job_report" / "processed_mini-batches.csv").read_text().splitlines()
        tries = sorted(tuple(map(int, line.split(",")[:2])) for line in report if "RUN_" in line)
        assert tries == sorted([(each, 1) for each in range(100)] + [(each, 2) for each in range(3, 100, 10)])


def test_a_job_that_would_fail_again_at_once_is_not_resumed() -> None:
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        job, switch, _ = submit(cluster, mini_batch_size=1, run_max_try=2, mini_batch_error_threshold=1)
        first = client.jobs.wait(job, raise_on_failure=False)
        assert first.failure is not None
        assert first.failure.errors[0].count >= 4
        with pytest.raises(Conflict, match=f"would fail again at once: .*`parallelrun job retry {job}`"):
            client.jobs.resume(job)
        client.jobs.retry(job)
        again = client.jobs.wait(job, raise_on_failure=False)
        assert again.failure is not None
        assert again.failure.errors[0].count >= first.failure.errors[0].count + 4, "earlier tries are forgotten"
        assert again.progress.retried >= first.progress.retried + 2
        switch.unlink()
        client.jobs.retry(job)
        assert client.jobs.wait(job).progress.done == 100


def test_retry_of_some_leaves_the_others_failed_and_can_be_resumed() -> None:
    with Cluster() as cluster:
        job, switch, runs = submit(cluster, mini_batch_size=1, run_max_try=1)
        cluster.result(job)
        switch.unlink()
        reopen(cluster, job, retry_failed=True, mini_batches=[3, 13])
        result = cluster.result(job)
        assert (result.progress.done, result.progress.failed) == (92, 8)
        folder = cluster.folder(job)
        folder.reopen(Reopening(generation=2, at=time.time(), retry_failed=True, mini_batches=[13, 23]))
        folder.conclude(msgspec.structs.replace(result, state=JobState.CANCELED))
        runs.write_text("")
        reopen(cluster, job, retry_failed=False)
        result = cluster.result(job)
        assert (result.progress.done, result.progress.failed) == (93, 7)
        assert runs.read_text().split() == ["file-0000023.txt"]


def test_resume_does_what_was_never_decided() -> None:
    with Cluster() as cluster:
        job, switch, runs = submit(cluster, mini_batch_size=1, run_max_try=1, mini_batch_error_threshold=1)
        first = cluster.result(job)
        assert first.state is JobState.FAILED
        assert not first.output
        switch.unlink()
        done = {outcome.mini_batch for outcome in read_outcomes(cluster.folder(job).path) if outcome.status == "done"}
        runs.write_text("")
        reopen(cluster, job, retry_failed=True)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        assert cluster.output(result) == [f"file-{number:07d}.txt" for number in range(100)]
        assert len(runs.read_text().split()) == 100 - len(done)


def test_a_concatenation_that_always_dies_fails_the_job_which_can_be_resumed() -> None:
    with Cluster(failpoints="concatenate.before_sync=kill") as cluster:
        runs = cluster.home / "runs"
        variables = {"SWITCH": str(cluster.home / "nowhere"), "RUNS": str(runs)}
        job = cluster.submit(PICKY, inputs=cluster.files(100), mini_batch_size=100, environment_variables=variables)
        first = cluster.result(job)
        assert first.state is JobState.FAILED
        assert first.failure is not None
        assert (first.failure.code, first.output) == ("CONCATENATION_FAILED", "")
        assert "died 5 times" in first.failure.summary
        cluster.kill("concatenator")
        cluster.environments["concatenator"] = {"PARALLELRUN_FAILPOINTS": ""}
        cluster.start("concatenator")
        reopen(cluster, job, retry_failed=True)
        again = cluster.result(job)
        assert again.state is JobState.COMPLETED
        assert len(cluster.output(again)) == 100
        assert len(runs.read_text().splitlines()) == 1


def test_a_cancelled_job_is_resumed_although_redis_has_lost_it() -> None:
    with Cluster() as cluster:
        job, switch, _ = submit(cluster, mini_batch_size=1)
        switch.unlink()
        cluster.registry.move(job, JobState.CANCELED)
        assert cluster.result(job).state is JobState.CANCELED
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
        cluster.redis.flushall()
        reopen(cluster, job, retry_failed=False)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert cluster.output(result) == [f"file-{number:07d}.txt" for number in range(100)]


def test_a_job_is_resumed_the_moment_it_was_canceled() -> None:
    """While its leader records the end and its workers are being ended."""
    with Cluster(api=True) as cluster, Client(cluster.api_url) as client:
        job, switch, _ = submit(cluster, mini_batch_size=1)
        switch.unlink()
        for _ in range(3):
            cluster.until(lambda: cluster.registry.status(job).state is not JobState.QUEUED, "it is processed")
            with suppress(Conflict):  # it is too late to cancel it
                client.jobs.cancel(job)
                client.jobs.resume(job)
        assert client.jobs.wait(job).progress.done == 100


def test_changed_inputs_are_refused_with_their_names_unless_told_otherwise() -> None:
    with Cluster() as cluster:
        job, switch, _ = submit(cluster, mini_batch_size=1, run_max_try=1)
        cluster.result(job)
        switch.unlink()
        os.utime(cluster.files(100) / "file-0000013.txt", (time.time() + 60, time.time() + 60))
        reopen(cluster, job, retry_failed=True)
        refused = cluster.result(job)
        assert refused.state is JobState.FAILED
        assert refused.failure is not None
        assert refused.failure.code == "INPUTS_CHANGED"
        assert "file-0000013.txt was changed" in refused.failure.summary
        reopen(cluster, job, retry_failed=True, accept_changed_inputs=True)
        assert cluster.result(job).progress.done == 100
