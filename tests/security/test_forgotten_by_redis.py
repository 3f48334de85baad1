"""What was promised to a client holds also when Redis forgets it: one job for a key, and the end of a canceled job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun.embedded.cluster import reserve_port
from parallelrun_core.layout import job_ids
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.test_redis_faults import cut_tail

pytestmark = pytest.mark.integration

IDENTITY = "def run(mini_batch):\n    return mini_batch\n"
SLOW = "import time\n\n\ndef run(mini_batch):\n    time.sleep(0.2)\n    return mini_batch\n"
PATIENCE_S = 120.0
"""Three servers that each sync what they accept take long on a machine that is busy."""
STEPS_OF_A_SUBMISSION = ("key.written", "key.claimed", "create.before_rename", "api.accepted")
"""Where an API dies that accepts a job with a key."""


def spec(cluster: Cluster, script: str = IDENTITY, **changes: Any) -> dict[str, Any]:
    code = str(cluster.code(script))
    return {"code": code, "entry_script": "entry.py", "inputs": str(cluster.files(40)), "mini_batch_size": 1, **changes}


def post(url: str, job: dict[str, Any], key: str = "one") -> httpx.Response:
    return httpx.post(f"{url}/v1/jobs", json=job, headers={"Idempotency-Key": key} if key else {}, timeout=PATIENCE_S)


def forget_everything(cluster: Cluster) -> None:
    cluster.redis.flushall()


@contextmanager
def apis(cluster: Cluster, count: int) -> Iterator[list[str]]:
    """The URLs of so many APIs of a cluster, its own one first."""
    urls = [cluster.api_url]
    ports = [reserve_port(0) for _ in range(count - 1)]
    try:
        for number, held in enumerate(ports):
            port = str(held.getsockname()[1])
            urls.append(f"http://127.0.0.1:{port}")
            cluster.add(f"api{number}", "parallelrun_api.main", "--port", port, "--insecure")
        cluster.wait_for_apis(*urls)
        yield urls
    finally:
        for held in ports:
            held.close()


def restart(cluster: Cluster) -> None:
    """Start what a failpoint has killed."""
    cluster.until(lambda: bool(cluster.restart_dead()), "somebody has died")


# One key, one job


def test_one_key_makes_one_job_also_when_redis_forgot_everything() -> None:
    check_a_wiped_redis()


def check_a_wiped_redis(without: str = "") -> None:
    with Cluster(nodes=0, api=True, without=without) as cluster:
        job = spec(cluster)
        first = post(cluster.api_url, job)
        forget_everything(cluster)
        again, other = post(cluster.api_url, job), post(cluster.api_url, spec(cluster, name="other"))
        assert (first.status_code, again.status_code) == (202, 202), again.text
        assert again.json()["id"] == first.json()["id"]
        assert other.json()["code"] == "idempotency_key_reused"
        assert job_ids(cluster.root) == [first.json()["id"]]


def test_one_key_makes_one_job_at_many_servers_at_once_while_redis_forgets() -> None:
    check_many_at_once()


def check_many_at_once(without: str = "") -> None:
    rounds = 5
    with (
        Cluster(nodes=0, api=True, without=without) as cluster,
        apis(cluster, 3) as urls,
        ThreadPoolExecutor(13) as many,
    ):
        for number in range(rounds):
            job = spec(cluster, name=f"job {number}")
            asked = [many.submit(post, url, job, f"key-{number}") for url in urls * 4]
            many.submit(forget_everything, cluster)
            got = [each.result() for each in asked]
            assert {answer.status_code for answer in got} == {202}, [answer.text for answer in got]
            assert len({answer.json()["id"] for answer in got}) == 1
        assert len(job_ids(cluster.root)) == rounds


@pytest.mark.parametrize("step", STEPS_OF_A_SUBMISSION)
def test_an_api_that_dies_on_its_way_to_a_job_and_a_wiped_redis_leave_one(step: str, tmp_path: Path) -> None:
    with Cluster(nodes=0, api=True, failpoints=f"{step}=kill:{tmp_path / 'reached'}") as cluster:
        job = spec(cluster)
        with pytest.raises(httpx.TransportError):
            post(cluster.api_url, job)
        assert (tmp_path / "reached").exists()
        forget_everything(cluster)
        restart(cluster)
        with apis(cluster, 3) as urls, ThreadPoolExecutor(6) as many:
            got = [each.result() for each in [many.submit(post, url, job) for url in urls * 2]]
        assert {answer.status_code for answer in got} == {202}, [answer.text for answer in got]
        assert {answer.json()["id"] for answer in got} == set(job_ids(cluster.root))
        assert len(job_ids(cluster.root)) == 1


# A cancel


def wiped(cluster: Cluster, length: int) -> None:
    cluster.redis.flushall()


def set_back(cluster: Cluster, length: int) -> None:
    cut_tail(cluster, length)


@pytest.mark.parametrize("forget", [wiped, set_back])
def test_a_cancel_that_redis_forgets_right_after_the_answer_takes_place(forget: Callable[[Cluster, int], None]) -> None:
    check_a_forgotten_cancel(forget)


def check_a_forgotten_cancel(forget: Callable[[Cluster, int], None], without: str = "") -> None:
    with Cluster(nodes=1, slots=1, leader_s=1, api=True, without=without) as cluster:
        job = running(cluster)
        for leader in cluster.leaders():
            leader.suspend()  # so that it records nothing of what Redis is told
        (log,) = cluster.redis_server.folder.glob("appendonlydir/*.incr.aof")
        length = log.stat().st_size
        answer = cancel(cluster, job)
        assert (answer.status_code, answer.json()["state"]) == (202, "canceled")
        forget(cluster, length)
        assert cluster.registry.state(job) is not JobState.CANCELED
        for leader in cluster.leaders():
            leader.resume()
        assert cluster.result(job).state is JobState.CANCELED


def test_a_job_goes_on_when_the_cancel_that_redis_forgot_was_refused_or_taken_back() -> None:
    with Cluster(nodes=1, slots=1, leader_s=1, api=True) as cluster:
        cluster.kill("concatenator")
        job = post(cluster.api_url, spec(cluster)).json()["id"]
        cluster.until(lambda: cluster.registry.state(job) is JobState.FINALIZING, "all is decided", 60)
        assert cancel(cluster, job).status_code == 409
        forget_everything(cluster)
        cluster.start("concatenator")
        assert cluster.result(job).state is JobState.COMPLETED

        canceled = running(cluster)
        assert cancel(cluster, canceled).status_code == 202
        assert cluster.result(canceled).state is JobState.CANCELED
        cluster.until(lambda: not cluster.registry.is_active(canceled), "it is retired")
        assert httpx.post(f"{cluster.api_url}/v1/jobs/{canceled}:resume", timeout=PATIENCE_S).status_code == 202
        cluster.until(lambda: cluster.registry.state(canceled) is JobState.PROCESSING, "it goes on")
        forget_everything(cluster)
        assert cluster.result(canceled, timeout_s=90).state is JobState.COMPLETED


def test_an_api_that_dies_while_it_cancels_is_asked_again(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    with Cluster(nodes=1, slots=1, leader_s=1, api=True, failpoints=f"cancel.recorded=kill:{reached}") as cluster:
        job = running(cluster)
        with pytest.raises(httpx.TransportError):
            cancel(cluster, job)
        assert reached.exists()
        restart(cluster)
        cluster.wait_for_apis()
        assert [cancel(cluster, job).status_code for _ in range(2)] == [202, 202]
        assert cluster.result(job).state is JobState.CANCELED
        assert cancel(cluster, job).status_code == 202


def running(cluster: Cluster) -> str:
    job = str(post(cluster.api_url, spec(cluster, SLOW), key="").json()["id"])
    cluster.until(lambda: cluster.registry.status(job).progress.decided > 0, "it runs")
    return job


def cancel(cluster: Cluster, job: str) -> httpx.Response:
    return httpx.post(f"{cluster.api_url}/v1/jobs/{job}:cancel", timeout=PATIENCE_S)
