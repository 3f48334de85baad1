"""The core of the queue, for an agent whose redis-py has other private parts than expected: slower, and as right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from parallelrun_core.store import fast_path
from parallelrun_core.store.connection import DirectClient, connect_directly
from tests.integration.queue import test_model as model
from tests.integration.queue import test_turn as turn
from tests.integration.queue import test_turn_sessions as turn_sessions
from tests.integration.queue.job_on_redis import JobOnRedis, decided
from tests.twins.sabotage import always

pytestmark = pytest.mark.integration


@pytest.fixture
def client(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DirectClient]:
    monkeypatch.setattr(fast_path, "has_private_parts", always(False))
    with connect_directly(redis_url) as client:
        client.flushall()
        assert client.send is fast_path.send_through_redis_py
        yield client


def test_the_queue_behaves_as_its_model(client: DirectClient, monkeypatch: pytest.MonkeyPatch) -> None:
    few = settings(
        max_examples=20, stateful_step_count=30, deadline=None, phases=[Phase.generate], database=None,
        derandomize=True, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    monkeypatch.setattr(model.QueueMachine, "redis", client, raising=False)
    run_state_machine_as_test(model.QueueMachine, settings=few)


def test_tokens_fence_commits(client: DirectClient) -> None:
    turn.test_an_old_token_is_refused_once_the_mini_batch_went_to_somebody_else(JobOnRedis(client), decided)
    turn_sessions.test_of_two_deliveries_the_first_to_commit_decides(JobOnRedis(client))
