"""Which Redis is fit to keep jobs."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.store.fitness import unfit

GOOD = {"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "aof_enabled": 1}


@pytest.mark.parametrize(
    "change, count",
    [
        ({}, 0),
        ({"redis_version": "6.2.0"}, 0),
        ({"redis_version": "6.0.16"}, 1),
        ({"redis_version": ""}, 1),
        ({"maxmemory_policy": "allkeys-lru"}, 1),
        ({"aof_enabled": 0}, 1),
        ({"aof_enabled": 0, "maxmemory_policy": "volatile-ttl", "redis_version": "5.0.0"}, 3),
    ],
)
def test_which_redis_is_fit(change: dict[str, Any], count: int) -> None:
    assert len(unfit({**GOOD, **change}, may_forget=False)) == count


def test_a_volatile_redis_can_be_allowed() -> None:
    assert unfit({**GOOD, "aof_enabled": 0}, may_forget=True) == []
