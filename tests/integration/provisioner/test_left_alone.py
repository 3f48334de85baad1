"""Nodes whose provisioner and Redis have died for good: nobody but themselves can end them."""

from __future__ import annotations

import time

import pytest

from tests.integration.provisioner.conftest import Provisioned

pytestmark = pytest.mark.integration

ALONE_S = 3


def test_nodes_that_everybody_has_left_end_by_themselves() -> None:
    made = Provisioned()
    with made.cluster as cluster:
        made.start("provisioner", "--node-alone-seconds", str(ALONE_S))
        made.define("kept", min_instances=2, max_instances=2)
        cluster.until(lambda: made.status("kept").ready == 2, "both nodes are there")
        nodes = made.agents("kept")
        cluster.kill("provisioner")
        cluster.redis_server.kill()
        time.sleep(ALONE_S / 3)
        cluster.redis_server.start()
        back_at = time.time()
        cluster.until(
            lambda: sum(info.sent > back_at for info, _ in cluster.known_nodes.all()) == 2, "both are seen again"
        )
        assert made.agents("kept") == nodes, "a short outage ends none"

        cluster.redis_server.kill()
        began = time.monotonic()
        cluster.until(lambda: not made.agents("kept"), "they end by themselves", 20)
        assert time.monotonic() - began >= ALONE_S - 0.5
