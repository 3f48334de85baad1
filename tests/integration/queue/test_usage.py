"""The use of a cluster by its owners, on a real Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from parallelrun_core.store import keys
from parallelrun_core.store.usage import UsageStore, Used, week_of

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

NOW = 1_795_750_000.0


def test_use_is_added_up_and_counts_half_after_a_day(redis: Redis) -> None:
    usage = UsageStore(redis)
    assert usage.add({"anna": Used(100, 0), "": Used(8, 8)}, now=NOW) == pytest.approx({"anna": 100, "": 8}, abs=1)
    assert usage.add({"anna": Used(20, 5)}, now=NOW)["anna"] == pytest.approx(120, abs=1)
    stored: Any = redis.hget(keys.USAGE, "anna")
    value, at = stored.decode().split()
    redis.hset(keys.USAGE, "anna", f"{value} {float(at) - 86_400}")
    assert usage.add({}, now=NOW)["anna"] == pytest.approx(60, abs=1)
    assert [(each.week, each.owner, each.used) for each in usage.weeks()] == [
        (week_of(NOW), "", Used(8, 8)),
        (week_of(NOW), "anna", Used(120, 5)),
    ]


def test_only_so_many_weeks_are_kept(redis: Redis) -> None:
    usage = UsageStore(redis)
    for week in range(70):
        usage.add({"anna": Used(week, 0)}, now=NOW + week * 7 * 86_400)
    assert [each.used.slot_s for each in usage.weeks()] == [float(week) for week in range(69, 9, -1)]
    assert redis.hlen(keys.USAGE_WEEKS) == 60
