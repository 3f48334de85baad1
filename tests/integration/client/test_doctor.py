"""`parallelrun doctor` asks servers: sound ones, open ones, wrong ones, and none."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from parallelrun.client import Client
from parallelrun.doctor.checkup import Reported, checkup
from parallelrun.embedded.cluster import reserve_port
from parallelrun.errors import ParallelRunError
from parallelrun_core.answers.nodes import NodeCheck
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_core.wire.finding import Level, Place
from parallelrun_core.wire.states import NodeState
from tests.cluster import AOF, Cluster
from tests.redis_server import RedisServer

pytestmark = pytest.mark.integration

TOKEN = "a-token-of-this-test"
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that runs other tests a server answers late, and is not broken."""
    monkeypatch.setattr("parallelrun.doctor.server.ANSWER_S", PATIENCE_S)


def reports(subject: str, **place: str) -> list[Reported]:
    there = Place(root=Path.cwd(), **place)  # type: ignore[arg-type]
    return [each for each in checkup(there, longest_s=PATIENCE_S) if each.subject == subject]


def bad(subject: str, **place: str) -> list[str]:
    return [each.what for each in reports(subject, **place) if each.level is Level.BAD]


def test_a_redis_that_forgets_evicts_and_lets_anybody_in_is_bad_for_each_of_it() -> None:
    with RedisServer("--maxmemory-policy", "allkeys-lru") as server:
        said = bad("redis", redis_url=server.url)

    assert len(said) == 3
    assert any("append-only file is off" in each for each in said)
    assert any("maxmemory-policy is allkeys-lru" in each for each in said)
    assert any("its default user is open" in each for each in said)


def test_a_redis_with_a_password_is_fine_and_the_password_is_not_shown() -> None:
    with RedisServer(*AOF) as server:
        from redis import Redis

        with Redis.from_url(server.url, protocol=2) as client:
            client.config_set("requirepass", "canary-secret")
        url = server.url.replace("unix://", "unix://:canary-secret@")
        said = reports("redis", redis_url=url)

    assert {each.level for each in said} == {Level.OK}
    assert "canary-secret" not in str(said)


def test_a_redis_that_is_away_or_does_not_let_us_in_is_bad() -> None:
    with RedisServer(*AOF) as server:
        from redis import Redis

        with Redis.from_url(server.url, protocol=2) as client:
            client.config_set("requirepass", "canary-secret")
        [closed] = bad("redis", redis_url=server.url)
    [away] = bad("redis", redis_url="redis://127.0.0.1:1/0")
    [wrong] = bad("redis", redis_url="http://127.0.0.1:1/0")
    [torn] = bad("redis", redis_url="redis://:canary/secret@127.0.0.1:1/0")

    assert "can't be used" in closed
    assert "can't be used" in away
    assert wrong == torn == "REDIS_URL is not the URL of a Redis server"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(api=True, token=TOKEN) as running:
        yield running


def test_a_cluster_that_works_is_described_with_its_nodes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallelrun.doctor.nodes._ANSWERS_S", PATIENCE_S)
    server = reports("server", url=cluster.api_url, token=TOKEN)
    nodes = reports("nodes", url=cluster.api_url, token=TOKEN)

    assert {each.level for each in server} == {Level.OK}
    assert any(each.what.startswith("node000 (") and "of 2 slots busy" in each.what for each in nodes)
    assert [each.what for each in nodes if each.level is not Level.OK] == [
        "on node000, workers run as the agent's own user: submitters can read what it can"
    ]


def test_what_a_node_says_of_itself_is_true(cluster: Cluster) -> None:
    [(info, is_alive)] = cluster.known_nodes.all()

    assert is_alive
    assert info.memory_bytes > 1 << 20
    assert info.disk_free_bytes > 1 << 20
    assert abs(info.clock_ahead_s) < 2


def test_nodes_with_another_version_a_wrong_clock_no_room_or_no_life_are_named(cluster: Cluster) -> None:
    def node(name: str, **fields: object) -> NodeInfo:
        described = {"session": "s", "host": "h", "pid": 1, "slots": 2, "busy": 0, "state": NodeState.READY,
                     "version": version("parallelrun"), "started": 1.0, "workers_apart": True, **fields}  # fmt: skip
        return NodeInfo(node=name, **described)  # type: ignore[arg-type]

    cluster.known_nodes.beat(node("fine", sent=time.time()), lease_ms=60_000)
    cluster.known_nodes.beat(node("old", version="0.0.1"), lease_ms=60_000)
    cluster.known_nodes.beat(node("fast", sent=time.time() + 100), lease_ms=60_000)
    cluster.known_nodes.beat(node("full", state=NodeState.DISK_FULL), lease_ms=60_000)
    cluster.known_nodes.beat(node("gone"), lease_ms=-1)
    try:
        warned = [each.what for each in reports("nodes", url=cluster.api_url, token=TOKEN) if each.level is Level.WARN]
        said = [each for each in warned if "has not said how it is" not in each]
    finally:
        for name in ("fine", "old", "fast", "full", "gone"):
            cluster.known_nodes.remove(name)

    assert re.sub(r"\+[\d.]+ s", "+x s", "; ".join(said)) == (
        "the clock of fast is +x s ahead of Redis'; full has little room on its disk; gone is lost; "
        "on node000, workers run as the agent's own user: submitters can read what it can; "
        "old has another version than this client"
    )
    silent = [each.partition(" ")[0] for each in warned if "has not said how it is" in each]
    assert silent == ["fast", "fine", "full", "old"]


def test_each_node_says_what_it_can_read_with_its_own_rights(cluster: Cluster) -> None:
    with Client(cluster.api_url, TOKEN) as client:
        there = cluster.files(1)
        asked = client.nodes.check([str(there), f"{there}-not"])
        cluster.until(lambda: _answer(client).id == asked, "the node has answered")
        answer = _answer(client)

    said = {each.what: each.level for each in answer.findings if str(there) in each.what}
    assert said.pop(f"input: {there} can be listed and read") == "ok"
    [(what, level)] = said.items()
    assert what.startswith(f"input: {there}-not: ")
    assert level == "bad"


def _answer(client: Client) -> NodeCheck:
    [node] = client.nodes.list()
    return node.check or NodeCheck(id="")


def test_a_path_that_jobs_may_not_use_is_not_tried_on_nodes(cluster: Cluster) -> None:
    with Client(cluster.api_url, TOKEN) as client, pytest.raises(ParallelRunError, match="own files"):
        client.nodes.check([str(cluster.root)])


def test_nodes_whose_workers_are_users_of_their_own_are_not_warned_of() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run workers as other users")
    with Cluster(api=True, token=TOKEN, worker_uids="64200-64999") as cluster:
        said = reports("nodes", url=cluster.api_url, token=TOKEN)

    assert {each.level for each in said} == {Level.OK}


def test_a_wrong_token_is_bad(cluster: Cluster) -> None:
    assert bad("server", url=cluster.api_url, token="wrong") == [f"{cluster.api_url} does not take this token"]


def test_an_api_that_is_away_and_a_url_that_is_none_are_bad(redis_url: str) -> None:
    with reserve_port(0) as port:
        url = f"http://127.0.0.1:{port.getsockname()[1]}"
        assert bad("server", url=url) == [f"{url} does not answer"]
    [none] = bad("server", url=redis_url)

    assert "is not the URL of a server" in none


def test_a_cluster_without_a_node_and_without_a_token_is_bad_for_both() -> None:
    with Cluster(api=True, nodes=0) as cluster:
        said = bad("nodes", url=cluster.api_url) + bad("server", url=cluster.api_url)

    assert said == [
        "no node is alive: jobs wait",
        "it takes jobs from anybody who can reach it: no token is required",
    ]
