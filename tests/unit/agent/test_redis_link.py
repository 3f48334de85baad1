"""Whether Redis answers, and how long an agent may wait for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from parallelrun_agent import redis_link
from parallelrun_agent.redis_link import RedisLink
from parallelrun_core.store.connection import ServerUnable


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> RedisLink:
    monkeypatch.setattr(redis_link, "connect_directly", Mock())
    return RedisLink("redis://nowhere")


def limits(of: RedisLink) -> list[float]:
    limit_wait: Any = of.redis.limit_wait
    return [call.args[0] for call in limit_wait.mock_calls]


def job(left_s: float, *, workers: int = 1) -> Any:
    return SimpleNamespace(lease_left_s=lambda now: left_s - now, workers=["worker"] * workers)


def test_attempts_get_rarer_until_one_succeeds(link: RedisLink) -> None:
    pauses = []
    for _ in range(7):
        link.failed(OSError("away"), 100.0)
        pauses.append(round(link.retry_at - 100.0, 3))
    assert link.failures == 7
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    link.recovered("another server")
    assert link.failures == 0
    link.failed(OSError("away"), 200.0)
    assert link.retry_at == pytest.approx(200.05)


def test_its_silence_is_counted_from_the_first_failure_since_it_answered(link: RedisLink) -> None:
    assert link.silent_s(100.0) == 0
    link.failed(OSError("away"), 100.0)
    link.failed(OSError("away"), 101.0)
    assert link.silent_s(103.0) == 3
    link.recovered("the same server")
    assert link.silent_s(104.0) == 0
    link.failed(OSError("away"), 105.0)
    assert link.silent_s(106.0) == 1


def test_a_server_that_says_that_it_cannot_work_is_not_silent(link: RedisLink) -> None:
    link.failed(OSError("away"), 100.0)
    link.failed(ServerUnable("OOM"), 101.0)
    assert not link.is_up
    assert link.silent_s(102.0) == 0
    link.failed(OSError("away"), 103.0)
    assert link.silent_s(105.0) == 2


def test_no_call_may_outlast_the_lease_of_a_job_with_workers(link: RedisLink) -> None:
    link.limit_wait([job(1.0, workers=0)], 0.0)
    assert limits(link) == [5.0]
    link.forget_limit()
    link.limit_wait([job(7.0), job(3.0), job(1.0, workers=0)], 0.0)
    assert limits(link) == [5.0, 3.0]
    link.limit_wait([job(3.0)], 2.5)
    assert limits(link) == [5.0, 3.0, 0.5]
    link.limit_wait([job(3.0)], 3.5)
    assert limits(link)[-1] == 0.02, "never none at all"


def test_a_lease_that_is_far_from_its_end_is_not_asked_for_again_and_again(link: RedisLink) -> None:
    asked: list[float] = []

    def left_s(now: float) -> float:
        asked.append(now)
        return 7.0

    patient: Any = SimpleNamespace(lease_left_s=left_s, workers=["worker"])
    for now in (0.0, 0.5, 1.0, 1.9):
        link.limit_wait([patient], now)
    assert asked == [0.0]
    link.limit_wait([patient], 2.0)
    assert asked == [0.0, 2.0]
