"""What the proofs about permits find when a part of the mechanism is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from parallelrun_agent.permits.queue import PermitQueue
from parallelrun_worker.script_api import permits as worker_permits
from tests.cluster import Cluster
from tests.integration import test_limits as limits
from tests.integration.queue import test_permits as permits
from tests.redis_server import RedisServer
from tests.twins.sabotage import altered, always, expect_failure
from tests.unit.agent import test_permit_queue as queues
from tests.unit.worker import test_permits as of_scripts

if TYPE_CHECKING:
    from redis import Redis


@pytest.mark.integration
def test_permits_that_ignore_the_rate_are_found() -> None:
    from parallelrun_core.store.connection import connect

    with RedisServer() as server:
        redis: Redis = connect(server.url)
        per_request = "requests = math.max(requests, now - BURST_MS) + per_request"
        with altered("permits", per_request, "requests = now"), expect_failure():
            permits.test_permits_of_a_rate_are_spread_evenly(redis)
        with altered("permits", "held >= most", "held >= most + 1"), expect_failure():
            permits.test_permits_that_are_held_are_counted_until_they_are_given_back(redis)
        redis.close()


@pytest.mark.integration
def test_permits_that_go_to_who_asks_most_are_found() -> None:
    from parallelrun_core.store.connection import connect

    with RedisServer() as server:
        redis: Redis = connect(server.url)
        with altered("permits", "had > other.had + SLACK_MS", "false"), expect_failure():
            permits.test_permits_of_a_rate_go_to_jobs_alike_and_to_the_nodes_of_each_alike(redis, "requests_per_minute")
        with altered("permits", "held + #others >= most", "false"), expect_failure():
            permits.test_permits_that_calls_hold_are_shared_by_jobs_and_none_starves(redis, 1)
        redis.close()


def test_permits_that_stay_with_a_dead_worker_are_found() -> None:
    with patch.object(PermitQueue, "end", always([])), expect_failure():
        queues.test_permit_queue_gives_back_all_of_a_worker_that_is_gone()


def test_numbers_of_tokens_that_reach_the_agent_unseen_are_found() -> None:
    with patch.object(worker_permits, "_whole", always(0)), pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        of_scripts.test_permit_for_what_is_no_number_of_tokens_is_refused_in_words("many")


@pytest.mark.integration
@pytest.mark.slow
def test_call_of_more_tokens_than_a_limit_has_that_holds_up_the_others_is_found() -> None:
    with Cluster(nodes=1, slots=1, without="permits.refusal") as cluster, expect_failure():
        limits.refuse_a_greedy_call(cluster)
