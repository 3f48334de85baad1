"""A job has workers on as many nodes as it asks for, and the others are free; when it gives up waiting for one."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path

import pytest

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.document import read_definition
from parallelrun_core.names.computes import BuiltImage
from parallelrun_core.store.provisioning import ImageBuild, Provisioning, ProvisioningStatus
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

NAMES = textwrap.dedent("""
    import os, time
    def init():
        open(os.path.join(os.environ["FOLDER"], f"init-{os.getpid()}"), "w").close()
        time.sleep(float(os.environ.get("INIT_S", 0)))
    def run(mini_batch):
        gate = os.path.join(os.environ["FOLDER"], "go")
        while not os.path.exists(gate):
            time.sleep(0.02)
        return [os.path.basename(path) for path in mini_batch]
""")


def nodes_of(cluster: Cluster, job: str) -> set[str]:
    """The nodes on which the job had workers at any time."""
    return {path.name for path in cluster.folder(job).logs.glob("sys/node/*") if path.is_dir()}


def working(cluster: Cluster) -> dict[str, set[str]]:
    """The jobs that have workers on each node now."""
    return {info.node: set(info.workers) for info, alive in cluster.known_nodes.all() if alive}


def places(folder: Path) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    return {"FOLDER": str(folder)}


def submit(cluster: Cluster, name: str, *, files: int = 40, **settings: object) -> str:
    settings = {"mini_batch_size": 1, "environment_variables": places(cluster.home / name), **settings}
    return cluster.submit(NAMES, inputs=cluster.files(files), **settings)


def go(cluster: Cluster, name: str) -> None:
    (cluster.home / name / "go").touch()


def begun(cluster: Cluster, name: str) -> int:
    return len(list((cluster.home / name).glob("init-*")))


def test_jobs_that_ask_for_one_node_each_have_one_each_and_nothing_begins_elsewhere() -> None:
    with Cluster(nodes=2, slots=2) as cluster:
        first = submit(cluster, "first", instance_count=1)
        cluster.until(lambda: begun(cluster, "first") == 2, "the first has its workers")
        second = submit(cluster, "second", instance_count=1)
        cluster.until(
            lambda: begun(cluster, "second") == 2, "the second has workers although the first holds all of its"
        )
        [of_first], [of_second] = nodes_of(cluster, first), nodes_of(cluster, second)
        assert of_first != of_second
        for name, job in (("first", first), ("second", second)):
            go(cluster, name)
            result = cluster.result(job)
            assert (result.state, len(cluster.output(result))) == (JobState.COMPLETED, 40)
        assert nodes_of(cluster, first) == {of_first}
        assert nodes_of(cluster, second) == {of_second}
        assert (begun(cluster, "first"), begun(cluster, "second")) == (2, 2), "no worker but these ran init()"


def test_jobs_of_one_node_that_come_at_once_begin_nothing_elsewhere() -> None:
    """Each has all of its workers on one node, whichever it is, in ten of ten jobs."""
    with Cluster(nodes=2, slots=2) as cluster:
        jobs = [submit(cluster, "all", files=20, instance_count=1) for _ in range(10)]
        go(cluster, "all")
        for job in jobs:
            assert cluster.result(job).state is JobState.COMPLETED
            assert len(nodes_of(cluster, job)) == 1


def test_a_node_that_dies_is_replaced_and_one_that_comes_is_left_to_others() -> None:
    with Cluster(nodes=3, slots=1, lease_s=2.0) as cluster:
        job = submit(cluster, "job", instance_count=2, lost_leases=100)
        cluster.until(lambda: begun(cluster, "job") == 2, "two nodes work")
        before = nodes_of(cluster, job)
        assert len(before) == 2
        dead = min(before)
        cluster.kill(dead)
        cluster.until(lambda: begun(cluster, "job") == 3, "the third node takes its place")
        after = nodes_of(cluster, job) - {dead}
        assert len(after) == 2
        cluster.start(dead)
        cluster.until(lambda: dead in working(cluster), "it is back")
        go(cluster, "job")
        result = cluster.result(job)
        assert (result.state, len(cluster.output(result))) == (JobState.COMPLETED, 40)
        assert begun(cluster, "job") == 3


def test_the_next_leader_keeps_the_nodes_of_the_job() -> None:
    with Cluster(nodes=3, slots=1, leader_s=2.0) as cluster:
        job = submit(cluster, "job", instance_count=1)
        cluster.until(lambda: begun(cluster, "job") == 1, "a node works")
        [leader] = cluster.leaders()
        term = cluster.registry.status(job).term
        leader.send_signal(signal.SIGKILL)
        cluster.until(lambda: cluster.registry.status(job).term > term, "another leads")
        go(cluster, "job")
        result = cluster.result(job)
        assert (result.state, len(cluster.output(result))) == (JobState.COMPLETED, 40)
        assert (len(nodes_of(cluster, job)), begun(cluster, "job")) == (1, 1)


def test_a_node_whose_place_another_has_taken_ends_its_workers_and_leaves() -> None:
    """As one whose disk was full: by the time it has room, the job has another one."""
    with Cluster(nodes=2, slots=1) as cluster:
        job = submit(cluster, "job", instance_count=1)
        cluster.until(lambda: begun(cluster, "job") == 1, "a node works")
        [chosen] = nodes_of(cluster, job)
        [other] = set(cluster.nodes) - {chosen}
        cluster.until(lambda: working(cluster)[chosen] == {job}, "its leader sees that")
        os.kill(cluster.processes["master"].pid, signal.SIGSTOP)  # so that it stays as it is put here
        for leader in cluster.leaders():
            leader.suspend()
        keys = f"parallelrun:{{{job}}}:nodes"
        cluster.redis.delete(keys)
        cluster.redis.sadd(keys, other)
        go(cluster, "job")
        cluster.until(lambda: working(cluster) == {chosen: set(), other: {job}}, "the work goes on at the other one")
        for leader in cluster.leaders():
            leader.resume()
        os.kill(cluster.processes["master"].pid, signal.SIGCONT)
        result = cluster.result(job)
        assert (result.state, len(cluster.output(result))) == (JobState.COMPLETED, 40)


def test_without_a_node_a_job_fails_in_its_first_timeout() -> None:
    with Cluster(nodes=0) as cluster:
        failure = cluster.result(submit(cluster, "job", first_task_creation_timeout=1)).failure
        assert failure is not None
        assert "No mini-batch has been run for 1 s (first_task_creation_timeout): no node is alive." in failure.summary


def test_while_init_goes_on_the_first_timeout_counts() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        places_ = {**places(cluster.home / "job"), "INIT_S": "600"}
        job = submit(cluster, "job", first_task_creation_timeout=4, environment_variables=places_)
        failure = cluster.result(job).failure
        assert failure is not None
        assert failure.summary.startswith("No mini-batch has been run for 4 s (first_task_creation_timeout): 1 node")
        assert "none of 1 workers has got through init()" in failure.summary


def test_a_mini_batch_that_is_run_ends_the_first_timeout() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = submit(cluster, "job", files=2, first_task_creation_timeout=3)
        cluster.until(lambda: begun(cluster, "job") == 1, "it works")
        submit(cluster, "next", files=2, first_task_creation_timeout=2, instance_count=1)
        waits = "waits, and no timeout runs: other jobs hold all slots on all of its nodes"
        cluster.until(lambda: waits in overview(cluster), "the next one says what it waits for")
        cluster.until(lambda: seconds(cluster, job) > 6, "both timeouts would have been over")
        go(cluster, "job")
        go(cluster, "next")  # which has its part of the slots as soon as a mini-batch of the first has ended
        assert cluster.result(job).state is JobState.COMPLETED


def test_while_an_image_is_built_the_first_timeout_stands_still_and_that_is_said() -> None:
    """The test is the provisioner, and says what one says that builds the image of a job."""
    context = "a" * 64
    image = BuiltImage(context, "Dockerfile").name
    with Cluster(nodes=0) as cluster:
        ComputeCatalog(cluster.root).define(read_definition({"name": "cpus", "type": "local"}))
        provisioning = Provisioning(cluster.redis)

        def says(failure: str = "") -> bool:
            now = cluster.registry.now()
            build = ImageBuild(said="building its image: Step 1/9", failure=failure, failed_at=now if failure else 0.0)
            provisioning.publish("cpus", ProvisioningStatus(at=now, wanted=1, builds={image: build}))
            return True

        says()
        environment = {"build": {"path": f"azureml:code/{context}"}}
        job = submit(cluster, "job", first_task_creation_timeout=2, compute="cpus", environment=environment)
        step = "Provisioning nodes of compute 'cpus': building its image: Step 1/9."
        cluster.until(lambda: says() and step in overview(cluster), "the job says what is built")
        cluster.until(lambda: says() and seconds(cluster, job) > 6, "the timeout would have been over")
        assert "The job waits, and no timeout runs: nodes of compute 'cpus' are on their way" in overview(cluster)
        assert cluster.registry.status(job).state is JobState.PROCESSING
        says(failure="no such base")
        failure = cluster.result(job).failure
        assert failure is not None
        assert (failure.code, failure.first_cause) == ("IMAGE_FAILED", "no such base")


def test_workers_beyond_the_slots_are_said_and_there_where_an_operator_allows_them() -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        job = submit(cluster, "job", files=4, max_concurrency_per_instance=3)
        go(cluster, "job")
        result = cluster.result(job)
        cut = "max_concurrency_per_instance asks for 3 workers on each node, and nodes have 1 slot"
        assert any(cut in warning for warning in result.warnings)
        assert cut in overview(cluster)
    with Cluster(nodes=1, slots=1, agent_flags=("--most-slots", "2")) as cluster:
        job = submit(cluster, "job", max_concurrency_per_instance=3)
        cluster.until(lambda: begun(cluster, "job") == 2, "as many as the operator allows")
        go(cluster, "job")
        result = cluster.result(job)
        assert (len(cluster.output(result)), begun(cluster, "job")) == (40, 2)
        assert any("nodes have 2 slots" in warning for warning in result.warnings)
        other = submit(cluster, "other")
        go(cluster, "other")
        assert cluster.result(other).warnings == []
        assert begun(cluster, "other") == 1, "who doesn't ask for more has the slots"


def overview(cluster: Cluster) -> str:
    return "".join(path.read_text() for path in cluster.root.glob("jobs/*/logs/job_progress_overview.*.txt"))


def seconds(cluster: Cluster, job: str) -> float:
    return cluster.registry.now() - (cluster.registry.status(job).started or 0.0)
