"""What people do to a job, when its workers have several mini-batches in flight: pause it, cancel it, drain a node."""

from __future__ import annotations

import textwrap
from collections import Counter

import pytest

from parallelrun.client import Client
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

WAITS = textwrap.dedent("""
    import asyncio, os
    folder = os.environ["FOLDER"]
    async def run(mini_batch):
        [path] = mini_batch
        with open(os.path.join(folder, "begun"), "a") as file:
            file.write(os.path.basename(path) + "\\n")
        while not os.path.exists(os.path.join(folder, "go")):
            await asyncio.sleep(0.02)
        return [os.path.basename(path)]
""")
COUNTS = textwrap.dedent("""
    import asyncio, os
    at_once = most = 0
    async def run(mini_batch):
        global at_once, most
        at_once += 1
        if at_once > most:
            most = at_once
            with open(os.path.join(os.environ["FOLDER"], "most"), "w") as file:
                file.write(str(most))
        await asyncio.sleep(0.05)
        at_once -= 1
        return ["row"]
""")
IN_FLIGHT = 8


def names(count: int) -> list[str]:
    return [f"file-{number:07d}.txt" for number in range(count)]


def begun(cluster: Cluster) -> Counter[str]:
    file = cluster.home / "begun"
    return Counter(file.read_text().split() if file.exists() else [])


def submit_waiting(cluster: Cluster) -> str:
    """Return a job whose workers all have as many mini-batches in flight as they may, none of which ends."""
    job = cluster.submit(
        WAITS, inputs=cluster.files(60), mini_batch_size=1, mini_batches_in_flight=IN_FLIGHT,
        run_invocation_timeout=600, environment_variables={"FOLDER": str(cluster.home)},
    )  # fmt: skip
    full = IN_FLIGHT * len(cluster.nodes)
    cluster.until(lambda: len(begun(cluster)) == full, "all that may be is in flight", 120)
    return job


def let_go(cluster: Cluster) -> None:
    (cluster.home / "go").touch()


def test_in_flight_ends_and_nothing_more_begins_when_the_job_is_paused() -> None:
    with Cluster(nodes=1, slots=1, api=True) as cluster, Client(cluster.api_url) as client:
        job = submit_waiting(cluster)
        assert client.jobs.pause(job).paused
        cluster.until(lambda: client.jobs.explain(job).conditions[0].name == "paused", "it says so", 60)
        small = cluster.submit("def run(mini_batch): return ['row']", inputs=cluster.files(1))
        let_go(cluster)
        assert cluster.result(small, 120).state is JobState.COMPLETED, "the slot is for others"
        registry = Registry(cluster.redis)
        cluster.until(lambda: registry.status(job).progress.done == len(begun(cluster)), "what ran counts", 60)
        assert len(begun(cluster)) < 60
        assert not client.jobs.resume(job).paused
        result = cluster.result(job, 120)
        assert cluster.output(result) == names(60)
        assert begun(cluster) == dict.fromkeys(names(60), 1)
        assert (result.progress.failed, result.progress.retried) == (0, 0)


def test_in_flight_does_not_hold_up_the_end_of_a_job_that_is_canceled() -> None:
    with Cluster(nodes=1, slots=1, api=True) as cluster, Client(cluster.api_url) as client:
        job = submit_waiting(cluster)
        client.jobs.cancel(job)
        assert cluster.result(job, 120).state is JobState.CANCELED
        cluster.until(lambda: not any(node.jobs for node in client.nodes.list()), "its worker is gone", 60)
        assert len(begun(cluster)) == IN_FLIGHT


def test_in_flight_is_finished_and_not_charged_when_a_node_is_drained() -> None:
    with Cluster(nodes=2, slots=1) as cluster:
        job = submit_waiting(cluster)
        cluster.processes["node000"].terminate()
        cluster.until(lambda: cluster.logged("node000", "draining") > 0, "it drains", 60)
        let_go(cluster)
        assert cluster.processes["node000"].wait(120) == 0
        result = cluster.result(job, 120)
        assert cluster.output(result) == names(60)
        assert begun(cluster) == dict.fromkeys(names(60), 1), "nothing ran twice"
        assert {each.tries for each in read_decisions(cluster.folder(job).path)} == {1}


def test_in_flight_auto_grows_while_more_at_once_get_more_done() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = cluster.submit(
            COUNTS, inputs=cluster.files(20_000), mini_batch_size=1, mini_batches_in_flight="auto",
            environment_variables={"FOLDER": str(cluster.home)},
        )  # fmt: skip
        most = cluster.home / "most"
        cluster.until(
            lambda: most.exists() and int(most.read_text() or 0) > 2 * 8, "it has doubled what it began with", 180
        )
        Registry(cluster.redis).move(job, JobState.CANCELED)
        cluster.result(job)
