"""Whole jobs whose store, or whose node, does what it shouldn't: each row is there once, or its mini-batch says why."""

from __future__ import annotations

import csv
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.storage.conftest import Bucket, Store
from tests.integration.test_disk_full import SmallDisk
from tests.object_servers import ObjectServer, SeaweedFS
from tests.store_proxy import StoreProxy
from tests.twins import sabotage

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SIZE = 20_000
AWAY_S = float(os.environ.get("STORE_AWAY_S", "6"))
"""How long the store is away; a minute takes five with all of these, and `--timeout=300`."""
SCRIPT = """
import os, time, zlib
from pathlib import Path

def init():
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.01)

def run(mini_batch):
    time.sleep({pause})
    return [f"{{os.path.basename(path)}} {{zlib.crc32(Path(path).read_bytes())}}" for path in mini_batch]
"""
WRITES = """
import os, sys
from azureml_user.parallel_run import EntryScript
""" + SCRIPT.replace("    return", """    for path in mini_batch:
        with open(os.path.join(EntryScript().output_dir, "copy-" + os.path.basename(path)), "wb") as file:
            file.write(Path(path).read_bytes())
    return""")  # fmt: skip


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(SeaweedFS)


@pytest.fixture
def proxy(server: ObjectServer) -> Iterator[StoreProxy]:
    with StoreProxy(server.url) as proxy:
        yield proxy


class Given:
    """A cluster whose agents and concatenator reach the store by a proxy, and what is in the store.

    Args:
        cluster: not started yet.
    """

    def __init__(self, cluster: Cluster, bucket: Bucket, server: ObjectServer, proxy: StoreProxy) -> None:
        self.cluster, self.bucket = cluster, bucket
        self.gate = cluster.home / "gate"
        for name in ("concatenator", *cluster.nodes):
            cluster.environments[name] = server.environment_at(proxy.url)
        self.contents: dict[str, bytes] = {}

    def submit(
        self, count: int, *, size: int = SIZE, pause: float = 0.02, script: str = SCRIPT, **settings: Any
    ) -> str:
        """One object for each mini-batch; no worker is through init() before the gate is there."""
        for number in range(count):
            name = f"{number:03d}"
            self.contents[name] = bytes([number]) * size
            self.bucket.put(f"in/{name}", self.contents[name])
        given = {"mini_batch_size": 1, "environment_variables": {"GATE": str(self.gate)}, **settings}
        return self.cluster.submit(script.format(pause=pause), inputs=self.bucket.url("in"), **given)

    def decided(self, job: str) -> list[Outcome]:
        return list(read_decisions(self.cluster.folder(job).path))

    def rows(self, result: JobResult) -> list[str]:
        return self.cluster.output(result)

    def wanted(self) -> list[str]:
        return [f"{name} {zlib.crc32(content)}" for name, content in sorted(self.contents.items())]

    def prove_complete(self, job: str, timeout_s: float = 60) -> None:
        result = self.cluster.result(job, timeout_s)
        assert result.state is JobState.COMPLETED, result.failure
        assert self.rows(result) == self.wanted()
        assert result.progress.failed == 0, [each.failure for each in self.decided(job)]

    def failures(self, job: str) -> dict[str, str]:
        """The category and message of each mini-batch that has failed, by the name of its object."""
        names = sorted(self.contents)
        return {
            names[each.mini_batch]: f"{each.failure.category}: {each.failure.message}"
            for each in self.decided(job)
            if each.failure
        }


Make = Callable[..., Given]


@pytest.fixture
def given(bucket: Bucket, server: ObjectServer, proxy: StoreProxy) -> Make:
    def make(cluster: Cluster) -> Given:
        return Given(cluster, bucket, server, proxy)

    return make


def cluster_of(tmp_path: Path, *flags: str, **options: Any) -> Cluster:
    """Agents with a cache of their own."""
    return Cluster(agent_flags=("--cache-dir", str(tmp_path / "cache"), *flags), **options)


def prove_that_a_store_may_be_away(tmp_path: Path, given: Make, proxy: StoreProxy, without: str = "") -> None:
    cluster = cluster_of(tmp_path, without=without)
    here = given(cluster)
    here.gate.touch()
    with cluster:
        job = here.submit(60, pause=0.1, run_max_try=1)
        cluster.until(lambda: len(here.decided(job)) >= 10, "some are done")
        proxy.set("reset")
        back = threading.Timer(AWAY_S, proxy.set, ("pass",))
        back.start()
        try:
            here.prove_complete(job, AWAY_S + 54)
        finally:
            back.cancel()
            back.join()


def test_a_store_that_is_away_in_the_middle_of_a_job_costs_only_time(
    tmp_path: Path, given: Make, proxy: StoreProxy
) -> None:
    prove_that_a_store_may_be_away(tmp_path, given, proxy)


def test_without_patience_the_same_job_loses_mini_batches(tmp_path: Path, given: Make, proxy: StoreProxy) -> None:
    with sabotage.expect_failure():
        prove_that_a_store_may_be_away(tmp_path, given, proxy, without="staging.asked_again")


@pytest.mark.parametrize("during", [JobState.PROCESSING, JobState.FINALIZING])
def test_a_store_that_is_away_while_outputs_go_there_costs_only_time(
    tmp_path: Path, given: Make, proxy: StoreProxy, during: JobState
) -> None:
    cluster = cluster_of(tmp_path)
    here = given(cluster)
    here.gate.touch()
    bucket = here.bucket
    back = threading.Timer(AWAY_S, proxy.set, ("pass",))
    with cluster:
        job = here.submit(40, pause=0.05, run_max_try=1, script=WRITES, output=bucket.url("out"))
        if during is JobState.PROCESSING:
            cluster.until(lambda: len(here.decided(job)) >= 10, "some are done")
        else:
            cluster.until(lambda: len(here.decided(job)) == 40, "all are done")
        proxy.set("reset")
        back.start()
        try:
            result = cluster.result(job, AWAY_S + 84)
        finally:
            back.cancel()
            back.join()
        assert (result.state, result.progress.failed) == (JobState.COMPLETED, 0), result.failure
        assert bucket.content("out/parallel_run_step.txt").decode().splitlines() == here.wanted()
        written = {key.rpartition("/")[2] for key in list(bucket.keys()) if "/out/copy-" in key}
        assert written == {f"copy-{name}" for name in here.contents}


@pytest.mark.parametrize("mode", ["reset", "blackhole"])
def test_a_store_that_stays_away_ends_the_job_and_not_the_node(
    tmp_path: Path, given: Make, proxy: StoreProxy, mode: str
) -> None:
    cluster = cluster_of(tmp_path)
    here = given(cluster)
    here.gate.touch()
    with cluster:
        job = here.submit(16, pause=0.3, run_max_try=1, task_overhead_timeout=2)
        cluster.until(lambda: len(here.decided(job)) >= 3, "some are done")
        proxy.set(mode)  # type: ignore[arg-type]

        result = cluster.result(job, 110)

        assert result.state is JobState.COMPLETED, result.failure
        failures = here.failures(job)
        assert failures
        for name, failure in failures.items():
            assert failure.startswith(("INPUT_UNREADABLE", "LOAD_TIMEOUT")), failure
            assert here.bucket.url(f"in/{name}") in failure
            assert "task_overhead_timeout (2 s)" in failure
        done = [row for row, name in zip(here.wanted(), sorted(here.contents), strict=True) if name not in failures]
        assert here.rows(result) == done
        proxy.set("pass")
        here.prove_complete(here.submit(16, run_max_try=1))


def test_credentials_that_expire_in_the_middle_of_a_job_are_named(
    tmp_path: Path, given: Make, proxy: StoreProxy
) -> None:
    cluster = cluster_of(tmp_path)
    here = given(cluster)
    here.gate.touch()
    with cluster:
        job = here.submit(60, pause=0.1, run_max_try=1)
        cluster.until(lambda: len(here.decided(job)) >= 10, "some are done")
        proxy.spoil("expired")

        result = cluster.result(job)

        failures = here.failures(job)
        assert 0 < len(failures) <= 50
        for name, failure in failures.items():
            assert failure.startswith("INPUT_UNREADABLE")
            assert here.bucket.url(f"in/{name}") in failure
            assert "ExpiredToken: The provided token has expired. (HTTP 403)" in failure
        assert len(here.rows(result)) == 60 - len(failures)
        proxy.spoil("")
        here.prove_complete(here.submit(60, run_max_try=1))


def test_an_object_that_is_replaced_during_the_job_fails_its_mini_batch_alone(
    tmp_path: Path, given: Make, proxy: StoreProxy
) -> None:
    cluster = cluster_of(tmp_path, slots=1)
    here = given(cluster)
    with cluster:
        proxy.set("blackhole")  # for the agent: the master lists all the same
        job = here.submit(20, run_max_try=1)
        cluster.until(lambda: len(list(read_manifest(cluster.folder(job).path))) == 20, "all is listed")
        here.bucket.put("in/017", b"another one")
        proxy.set("pass")
        here.gate.touch()

        result = cluster.result(job)

        failures = here.failures(job)
        assert list(failures) == ["017"]
        assert failures["017"].startswith("INPUT_CHANGED")
        assert here.bucket.url("in/017") in failures["017"]
        assert here.rows(result) == [row for row in here.wanted() if not row.startswith("017 ")]


def test_items_that_can_not_be_brought_are_lost_alone(tmp_path: Path, given: Make, proxy: StoreProxy) -> None:
    cluster = cluster_of(tmp_path, slots=1)
    here = given(cluster)
    with cluster:
        proxy.set("blackhole")  # for the agent: the master lists all the same
        job = here.submit(20, run_max_try=2, mini_batch_size=5, on_failure="isolate")
        cluster.until(lambda: len(list(read_manifest(cluster.folder(job).path))) == 4, "all is listed")
        for name in ("004", "015", "017"):
            here.bucket.put(f"in/{name}", b"another one")
        proxy.set("pass")
        here.gate.touch()

        result = cluster.result(job)

        assert here.rows(result) == [row for row in here.wanted() if row[:3] not in ("004", "015", "017")]
        assert (result.progress.done, result.progress.items_lost, result.progress.items_short) == (4, 3, 0)
        with (cluster.folder(job).logs / "failed_items.csv").open(newline="") as file:
            listed = [(row["Item"][-3:], row["Error Category"]) for row in csv.DictReader(file)]
        assert listed == [("004", "INPUT_CHANGED"), ("015", "INPUT_CHANGED"), ("017", "INPUT_CHANGED")]


def test_a_mini_batch_that_is_too_large_for_the_cache_says_so(tmp_path: Path, given: Make) -> None:
    cluster = cluster_of(tmp_path, "--stage-bytes", "30000")
    here = given(cluster)
    here.gate.touch()
    with cluster:
        job = here.submit(10, run_max_try=1)
        here.prove_complete(job)  # each fits, and no three of them do at once
        here.bucket.put("in/010", bytes(40_000))
        here.contents["010"] = bytes(40_000)
        job = here.submit(10, run_max_try=1)
        result = cluster.result(job)
        failures = here.failures(job)
        assert list(failures) == ["010"]
        assert "--stage-bytes" in failures["010"]
        assert here.rows(result) == here.wanted()[:-1]


@pytest.mark.parametrize("room", [5 * SIZE, SIZE // 2], ids=["what is not used can go", "nothing can go"])
def test_a_cache_whose_disk_is_full_costs_time_and_nobody_a_try(tmp_path: Path, given: Make, room: int) -> None:
    cluster = cluster_of(tmp_path, "--stage-bytes", "100000000")
    here = given(cluster)
    here.gate.touch()
    disk = SmallDisk(tmp_path / "cache")
    try:
        with cluster:
            disk.fill(but=room)
            job = here.submit(30, run_max_try=1)
            if room < SIZE:
                cluster.until(lambda: cluster.logged("node000", "worker_ready") > 0, "only objects are waited for")
                assert here.decided(job) == []
                disk.free()
            here.prove_complete(job)
            assert {each.tries for each in here.decided(job)} == {1}
    finally:
        disk.unmount()


def prove_that_a_killed_agent_leaves_nothing(
    tmp_path: Path, given: Make, proxy: StoreProxy, without: str = "", nodes: int = 1
) -> None:
    cluster = cluster_of(tmp_path, nodes=nodes, lease_s=2.0, without=without)
    here = given(cluster)
    here.gate.touch()
    cache = tmp_path / "cache"
    with cluster:
        for name in cluster.nodes[1:]:
            cluster.kill(name)
        proxy.set("one-way")
        job = here.submit(12, size=2 << 20)
        cluster.until(lambda: any(cache.rglob(".new-*")), "objects are on their way")
        cluster.kill("node000")
        assert list(cache.rglob(".new-*")), "they are left"
        (left,) = (cache / "staged").iterdir()
        proxy.set("pass")
        cluster.start(cluster.nodes[-1])
        here.prove_complete(job)
        assert not left.exists()
        cluster.until(lambda: not list(cache.rglob(".new-*")), "what it was fetching is gone")
        cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
        cluster.until(lambda: not list(cache.glob("staged/*/*")), "its tree is gone")


@pytest.mark.parametrize("nodes", [1, 2], ids=["the same node again", "another node"])
def test_an_agent_that_is_killed_while_it_stages_costs_no_row_and_leaves_nothing(
    tmp_path: Path, given: Make, proxy: StoreProxy, nodes: int
) -> None:
    prove_that_a_killed_agent_leaves_nothing(tmp_path, given, proxy, nodes=nodes)


def test_what_a_killed_agent_leaves_is_found(tmp_path: Path, given: Make, proxy: StoreProxy) -> None:
    with sabotage.expect_failure():
        prove_that_a_killed_agent_leaves_nothing(tmp_path, given, proxy, without="staging.abandoned")
