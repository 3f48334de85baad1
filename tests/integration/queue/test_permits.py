"""Permits are given at the rate of the whole cluster, on a real server, whoever asks for how many."""

from __future__ import annotations

import random
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from parallelrun_agent.permits.queue import PermitQueue, WaitingCall
from parallelrun_agent.permits.server import PermitServer
from parallelrun_core.limits.definition import Limit, limit_catalog
from parallelrun_core.store import keys
from parallelrun_core.store.job_views import JobViews
from parallelrun_core.store.permits import Call, Party, Permits

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

WITHIN_S = 60.0
"""For calls that take some seconds, also where the machine is busy."""


@pytest.fixture(autouse=True)
def fresh(redis: Redis) -> None:
    redis.delete(*keys.of_limit("service"))


def party(node: str = "n", *, waiting: int = 100, held: int = 0) -> Party:
    return Party("job", node, waiting, held)


def calls(count: int, *, tokens: int = 0, node: str = "n") -> list[Call]:
    return [Call(f"{node}/{number}", tokens) for number in range(count)]


def starts(redis: Redis, limit: Limit, count: int, *, tokens: int = 0) -> list[float]:
    """When so many calls of several nodes may begin, by the clock of the server."""
    permits, chance = Permits(redis), random.Random(7)
    begun: list[float] = []
    deadline = time.monotonic() + WITHIN_S
    while len(begun) < count:
        assert time.monotonic() < deadline, f"{len(begun)} of {count} calls may have begun within {WITHIN_S:g} s"
        seconds, micros = redis.time()  # before the script's own time, by less than a call takes
        granted = permits.take(limit, party(), calls(chance.randint(1, 30), tokens=tokens))
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
    granted = permits.take(limit, party(), calls(5))
    assert len(granted.starts_s) == 3
    assert granted.wait_s > 0
    assert permits.take(limit, party("other"), calls(1, node="other")).starts_s == []
    permits.give_back("service", ["n/0", "n/1"])
    assert len(permits.take(limit, party("other"), calls(5, node="other")).starts_s) == 2


def test_permits_of_a_node_that_is_gone_come_back(redis: Redis) -> None:
    permits, limit = Permits(redis), Limit(name="service", in_flight=1)
    permits.take(limit, party(), calls(1))
    permits.keep("service", ["n/0"])
    assert permits.take(limit, party("other"), calls(1, node="other")).starts_s == []
    _, held, _ = keys.of_limit("service")
    redis.zadd(held, {"n/0": 1})  # nobody has said for long that it goes on
    assert len(permits.take(limit, party("other"), calls(1, node="other")).starts_s) == 1


def test_permits_stop_after_the_service_has_refused_a_call_and_are_fewer_then(redis: Redis) -> None:
    permits, limit = Permits(redis), Limit(name="service", requests_per_minute=60_000)
    permits.take(limit, party(), calls(1))
    permits.slow_down("service", 5.0)
    granted = permits.take(limit, party(), calls(1))
    assert granted.starts_s == []
    assert 3.0 < granted.wait_s <= 5.0
    state, _, _ = keys.of_limit("service")
    assert float(redis.hget(state, "share") or 0) == pytest.approx(0.75, abs=0.01)
    redis.hset(state, "share_at", float(redis.hget(state, "share_at") or 0) - 20_000)
    assert 0.85 <= JobViews(redis).limits(["service", "other"])["service"].share < 1, "it recovers"
    assert JobViews(redis).limits(["other"]) == {}


def test_permits_come_as_before_when_the_clock_of_redis_was_set_back(redis: Redis) -> None:
    permits, limit = Permits(redis), Limit(name="service", requests_per_minute=600, in_flight=3)
    assert len(permits.take(limit, party("gone"), calls(3, node="gone")).starts_s) == 3
    permits.give_back("service", ["gone/0", "gone/1"])
    state, held, parties = keys.of_limit("service")
    hour_ms = 3_600_000
    for name in ("requests", "at"):
        redis.hset(state, name, float(redis.hget(state, name) or 0) + hour_ms)
    redis.zincrby(held, hour_ms, "gone/2")
    ((asker, had),) = redis.hgetall(parties).items()
    amount, until, asked, given, count = map(float, had.split())
    redis.hset(
        parties, asker, f"{amount} {until + hour_ms:.0f} {asked + hour_ms:.0f} {given + hour_ms:.3f} {count:.0f}"
    )
    granted = permits.take(limit, party(held=0), calls(2))
    assert [start < 1 for start in granted.starts_s] == [True, True]
    assert (redis.zscore(held, "gone/2") or 0.0) < 1000 * (redis.time()[0] + 40), "the dead come back in time"


class Asker:
    """A job on a node that always has so many calls waiting, and asks for them as an agent does."""

    def __init__(self, redis: Redis, limit: Limit, job: str, node: str, *, waiting: int, call_s: float = 0.0) -> None:
        self._permits, self._limit = Permits(redis), limit
        self._job, self._node = job, node
        self._waiting, self._call_s = waiting, call_s
        self._queue = PermitQueue()
        self._number = 0
        self._ends: list[tuple[float, WaitingCall]] = []
        self.begun = 0

    def step(self) -> None:
        now = time.monotonic()
        ended = [waiting for end, waiting in self._ends if end <= now]
        self._ends = [each for each in self._ends if each[0] > now]
        if ended:
            self._permits.give_back(self._limit.name, self._queue.end(each.caller for each in ended))
            self._queue.retry_at(0.0)
        while self._queue.counts[0] < self._waiting:
            self._number += 1
            holder = f"{self._node}/{self._job}/{self._number}"
            self._queue.add(WaitingCall((self, self._number), Call(holder, 100)))
        if asked := self._queue.next_calls(now):
            granted = self._permits.take(self._limit, Party(self._job, self._node, *self._queue.counts), asked)
            self._queue.grant(granted.starts_s, granted.wait_s, now)
        for waiting in self._queue.due(time.monotonic()):
            self._ends.append((time.monotonic() + self._call_s, waiting))
            self.begun += 1

    def close(self) -> None:
        """Ask for nothing more, as who dies."""
        self.step = lambda: None  # type: ignore[method-assign]


def begin(askers: list[Asker], count: int) -> list[int]:
    """Let them ask until so many more calls have begun; returns how many of each."""
    before, deadline = [asker.begun for asker in askers], time.monotonic() + WITHIN_S
    while (begun := sum(asker.begun for asker in askers) - sum(before)) < count:
        assert time.monotonic() < deadline, f"{begun} of {count} calls have begun within {WITHIN_S:g} s"
        for asker in askers:
            asker.step()
        time.sleep(0.002)
    return [asker.begun - earlier for asker, earlier in zip(askers, before, strict=True)]


@pytest.mark.parametrize("by", ["requests_per_minute", "tokens_per_minute"])
def test_permits_of_a_rate_go_to_jobs_alike_and_to_the_nodes_of_each_alike(redis: Redis, by: str) -> None:
    limit = Limit(name="service", **{by: 12_000 if by == "requests_per_minute" else 1_200_000})
    hungry = [Asker(redis, limit, "hungry", node, waiting=300) for node in ("n1", "n2", "n3")]
    modest = Asker(redis, limit, "modest", "n1", waiting=40)
    begin(hungry, 50)  # which has asked for all that there is when the other one comes
    begin([*hungry, modest], 120)  # what was given out before
    *of_nodes, of_modest = begin([*hungry, modest], 600)
    assert 0.4 <= of_modest / 600 <= 0.6
    assert max(of_nodes) - min(of_nodes) <= 0.15 * sum(of_nodes)


def test_permits_that_a_job_does_not_want_go_to_others(redis: Redis) -> None:
    limit = Limit(name="service", requests_per_minute=12_000)
    hungry, modest = (Asker(redis, limit, "a", "n1", waiting=300), Asker(redis, limit, "b", "n2", waiting=1))
    began = time.monotonic()
    of_hungry, of_modest = begin([hungry, modest], 500)
    assert of_modest > 5, "it never waits for long"
    modest.close()  # it waited when it died, and its share isn't kept for it
    begin([hungry, modest], 400)
    assert time.monotonic() - began < 900 / 200 + 2
    assert of_hungry > of_modest


@pytest.mark.parametrize("most", [1, 2, 7])
def test_permits_that_calls_hold_are_shared_by_jobs_and_none_starves(redis: Redis, most: int) -> None:
    limit = Limit(name="service", in_flight=most)
    hungry = [Asker(redis, limit, "hungry", node, waiting=100, call_s=0.02) for node in ("n1", "n2")]
    modest = Asker(redis, limit, "modest", "n3", waiting=100, call_s=0.02)
    begin(hungry, 10)
    first, second, of_modest = begin([*hungry, modest], 150)
    assert min(first, second) >= 0.1 * 150
    assert 0.25 <= of_modest / 150 <= 0.75


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 50_000,
        b'{"id": Infinity, "limit": "service", "what": "take"}',
        b'{"id": 1, "limit": "service", "what": "slow", "seconds": 1%s}' % (b"0" * 400),
        b"7",
    ],
)
def test_permits_go_on_after_a_worker_has_sent_what_nobody_can_read(
    redis_url: str, tmp_path: Path, line: bytes
) -> None:
    limit_catalog(tmp_path).define(Limit(name="service", in_flight=1))
    server = PermitServer(tmp_path, redis_url, "n")
    with socket.socket(fileno=server.open(("service",), "job", "process000")) as garbled:
        garbled.sendall(line + b"\n")
        garbled.settimeout(WITHIN_S)
        assert garbled.recv(1) == b"", "it was given up"
    with socket.socket(fileno=server.open(("service",), "job", "process001")) as worker:
        worker.settimeout(WITHIN_S)
        worker.sendall(b'{"id": 1, "limit": "service", "what": "take"}\n')
        assert worker.recv(100) == b'{"id": 1}\n'
