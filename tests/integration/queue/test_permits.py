"""Permits are given at the rate of the whole cluster, on a real server, whoever asks for how many."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from parallelrun_core.limits.definition import Limit
from parallelrun_core.store import keys
from parallelrun_core.store.permits import Call, Permits

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def fresh(redis: Redis) -> None:
    redis.delete(*keys.of_limit("service"))


def calls(count: int, *, tokens: int = 0, node: str = "n") -> list[Call]:
    return [Call(f"{node}/{number}", tokens) for number in range(count)]


def starts(redis: Redis, limit: Limit, count: int, *, tokens: int = 0) -> list[float]:
    """When so many calls of several nodes may begin, by the clock of the server."""
    permits, chance = Permits(redis), random.Random(7)
    begun: list[float] = []
    while len(begun) < count:
        seconds, micros = redis.time()  # before the script's own time, by less than a call takes
        granted = permits.take(limit, calls(chance.randint(1, 30), tokens=tokens))
        begun += [seconds + micros / 1e6 + start for start in granted.starts_s]
        if granted.wait_s:
            time.sleep(granted.wait_s)  # the pause that the server asks for
    return begun[:count]


def most_in_a_second(times: list[float]) -> int:
    return max(sum(first <= each < first + 1 for each in times) for first in times)


def test_permits_of_a_rate_are_spread_evenly(redis: Redis) -> None:
    begun = starts(redis, Limit(name="service", requests_per_minute=6000), 300)
    assert begun[-1] - begun[0] >= (300 - 1) / 100 - 0.25 - 0.1
    assert most_in_a_second(begun) <= 100 * 1.25 + 10


def test_permits_cost_as_many_tokens_as_calls_have(redis: Redis) -> None:
    limit = Limit(name="service", requests_per_minute=60_000, tokens_per_minute=600_000)
    begun = starts(redis, limit, 60, tokens=500)
    assert begun[-1] - begun[0] >= (60 - 1) * 500 / 10_000 - 0.25 - 0.1


def test_permits_that_are_held_are_counted_until_they_are_given_back(redis: Redis) -> None:
    permits, limit = Permits(redis), Limit(name="service", in_flight=3)
    granted = permits.take(limit, calls(5))
    assert len(granted.starts_s) == 3
    assert granted.wait_s > 0
    assert permits.take(limit, calls(1, node="other")).starts_s == []
    permits.give_back("service", ["n/0", "n/1"])
    assert len(permits.take(limit, calls(5, node="other")).starts_s) == 2


def test_permits_of_a_node_that_is_gone_come_back(redis: Redis) -> None:
    permits, limit = Permits(redis), Limit(name="service", in_flight=1)
    permits.take(limit, calls(1))
    permits.keep("service", ["n/0"])
    assert permits.take(limit, calls(1, node="other")).starts_s == []
    _, held = keys.of_limit("service")
    redis.zadd(held, {"n/0": 1})  # nobody has said for long that it goes on
    assert len(permits.take(limit, calls(1, node="other")).starts_s) == 1


def test_permits_stop_after_the_service_has_refused_a_call_and_are_fewer_then(redis: Redis) -> None:
    permits, limit = Permits(redis), Limit(name="service", requests_per_minute=60_000)
    permits.take(limit, calls(1))
    permits.slow_down("service", 5.0)
    granted = permits.take(limit, calls(1))
    assert granted.starts_s == []
    assert 3.0 < granted.wait_s <= 5.0
    state, _ = keys.of_limit("service")
    assert float(redis.hget(state, "share") or 0) == pytest.approx(0.75, abs=0.01)
