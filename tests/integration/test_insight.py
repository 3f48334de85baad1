"""What the code of a job does, seen from outside: where its workers are, and where its time goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from parallelrun import Client
from parallelrun.errors import Conflict, NotFound
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

WAITS = """
import time
from pathlib import Path
GO = Path({go!r})
def wait_for_go():
    while not GO.exists():
        time.sleep(0.05)
def run(mini_batch):
    wait_for_go()
    return mini_batch
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(api=True, lease_s=4, slots=4, agent_flags=("--gpus", "2")) as cluster:
        yield cluster


def test_the_line_in_which_workers_are_is_shown_and_they_go_on(cluster: Cluster) -> None:
    go = cluster.home / "go"
    job_id = cluster.submit(WAITS.format(go=str(go)), inputs=cluster.files(4), mini_batch_size=1, workers_per_gpu=1)
    with Client(cluster.api_url) as client:

        def both_wait() -> bool:
            return client.jobs.get(job_id).progress.running == 2

        cluster.until(both_wait, "both workers run")
        shown = client.jobs.stacks(job_id)
        assert shown.silent == []
        (node,) = shown.nodes
        assert [worker.process for worker in node.workers] == ["process000", "process001"]
        for worker in node.workers:
            functions = [frame.function for frame in worker.threads[0].frames]
            assert functions[-2:] == ["wait_for_go", "run"], worker
            assert (worker.doing, worker.threads[0].frames[-1].file) == ("waits", "entry.py")
        with pytest.raises(Conflict, match="node 'elsewhere' doesn't work"):
            client.jobs.stacks(job_id, node="elsewhere")
        command = [sys.executable, "-m", "parallelrun", "job", "stacks", job_id, "--worker", "process001"]
        printed = subprocess.run(
            [*command, "--url", cluster.api_url], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        assert "node000/process001 (pid " in printed
        assert "process000" not in printed
        assert "    entry.py:9 run\n" in printed
        go.touch()
        result = cluster.result(job_id)
        assert (result.state, result.progress.retried) == ("completed", 0)
        with pytest.raises(Conflict, match="no node works"):
            client.jobs.stacks(job_id)
        with pytest.raises(NotFound):
            client.jobs.stacks("job_00000000000000000000")


PROFILED = """
def expensive(paths):
    return [str(sum(range(100_000))) for _ in paths]
def run(mini_batch):
    return expensive(mini_batch)
"""


def test_profiles_are_told_as_data_by_worker_and_summed_up(cluster: Cluster) -> None:
    job_id = cluster.submit(PROFILED, inputs=cluster.files(20), mini_batch_size=1, profiling_module="cProfile")
    assert cluster.result(job_id).state == "completed"
    with Client(cluster.api_url) as client:
        profile = client.jobs.profile(job_id, sort="own", limit=5)
        expensive = next(each for each in profile.items if each.function == "expensive")
        assert (expensive.file, expensive.line, expensive.calls) == ("entry.py", 2, 20)
        assert (profile.left_out, profile.profiling_module) == (0, "cProfile")
        of_each = [client.jobs.profile(job_id, process=worker.process) for worker in profile.workers]
        assert sum(each.total_s for each in of_each) == pytest.approx(profile.total_s)
    tree = httpx.get(f"{cluster.api_url}/v1/jobs/{job_id}/profile/tree").json()
    names = [each["function"] for each in tree["items"]]
    assert names[0] == "run"
    assert tree["items"][names.index("expensive")]["parent"] == 0
    command = [sys.executable, "-m", "parallelrun", "job", "profile", job_id, "--sort", "calls", "--limit", "3"]
    printed = subprocess.run(
        [*command, "--url", cluster.api_url], capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    assert printed.stdout.split()[:5] == ["CUMULATIVE", "OWN", "CALLS", "FUNCTION", "WHERE"]
    assert len(printed.stdout.splitlines()) == 4
    assert f"functions of {len(profile.workers)} workers" in printed.stderr


ON_A_GPU = """
import os, time
def run(mini_batch):
    time.sleep(0.3)
    if mini_batch[0].endswith("file-0000003.txt"):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
    return [f"{os.environ['CUDA_DEVICE_ORDER']} {os.environ['CUDA_VISIBLE_DEVICES']}"]
"""


def test_workers_share_gpus_and_one_that_is_too_small_is_told_as_such(cluster: Cluster) -> None:
    job_id = cluster.submit(
        ON_A_GPU, inputs=cluster.files(20), mini_batch_size=1, workers_per_gpu=2, run_max_try=1,
        mini_batch_error_threshold=-1, error_threshold=-1,
    )  # fmt: skip
    result = cluster.result(job_id)
    assert (result.state, result.progress.failed) == ("completed", 1)
    assert set(cluster.output(result)) == {"PCI_BUS_ID 0", "PCI_BUS_ID 1"}
    with Client(cluster.api_url) as client:
        batches = list(client.jobs.mini_batches(job_id))
        (failed,) = [each for each in batches if each.status == "failed"]
        assert failed.failure is not None
        assert failed.failure.category == "GPU_OUT_OF_MEMORY"
        assert len({each.process for each in batches}) == 4, "two for each GPU"
