"""A Redis server that somebody else runs: `parallelrun up` and `run` check it before they start anything."""

from __future__ import annotations

import pytest
from redis import Redis

from parallelrun.embedded.redis_server import check_external
from parallelrun.errors import ClusterFailed
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.wire.states import NodeState
from tests.redis_server import RedisServer

pytestmark = pytest.mark.integration

KEEPS = ("--appendonly", "yes", "--maxmemory-policy", "noeviction")


@pytest.mark.parametrize(
    "options, reason",
    [
        (("--appendonly", "no"), "append-only file is off"),
        (("--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"), "allkeys-lru"),
    ],
)
def test_one_that_services_would_refuse_is_refused_with_the_same_words(options: tuple[str, ...], reason: str) -> None:
    with RedisServer(*options) as server, pytest.raises(ClusterFailed, match=f"can't be used: .*{reason}"):
        check_external(server.url, may_forget=False)


def test_one_that_forgets_can_be_allowed() -> None:
    with RedisServer("--appendonly", "no") as server:
        check_external(server.url, may_forget=True)


def test_one_that_does_not_say_what_it_is_is_refused_without_its_password() -> None:
    with RedisServer(*KEEPS) as server, pytest.raises(ClusterFailed, match="INFO is not permitted") as caught:
        check_external(server.url_without_info(), may_forget=True)
    assert ":pw@" not in caught.value.message


def test_one_that_serves_another_cluster_is_refused() -> None:
    info = NodeInfo(
        node="gpu-7", session="s", host="h", pid=1, slots=1, busy=0, state=NodeState.READY, version="1", started=1.0
    )
    with RedisServer(*KEEPS) as server:
        with Redis.from_url(server.url, protocol=2) as client:
            NodeRegistry(client).beat(info, lease_ms=60_000)
        with pytest.raises(ClusterFailed, match=r"already serves another cluster \(gpu-7\)"):
            check_external(server.url, may_forget=False)
