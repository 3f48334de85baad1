"""The use of a cluster by its owners: of late, for fair shares, and by week, for reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from redis import Redis

from parallelrun_core.store import keys
from parallelrun_core.store.scripts import script

HALF_LIFE_S: Final = 86_400.0
"""Seconds after which what an owner has used counts half."""
_KEPT_WEEKS: Final = 60
"""Weeks that are kept."""


class Used(NamedTuple):
    """The use of slots and GPUs, in seconds."""

    slot_s: float = 0.0
    gpu_s: float = 0.0


class Week(NamedTuple):
    week: str
    """The week by ISO 8601, in UTC: `2026-W48`."""
    owner: str
    used: Used


class UsageStore:
    """The use of a cluster. Raises redis-py's errors when the server is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._script = script(redis, "usage")

    def add(self, used: Mapping[str, Used], *, now: float) -> dict[str, float]:
        """Add what was used; returns the slot-seconds of all owners of late.

        Args:
            used: by owner.
            now: seconds since the epoch, which say what week it is.
        """
        words = [word for owner, each in used.items() for word in (owner, round(each.slot_s, 3), round(each.gpu_s, 3))]
        answer: Any = self._script(keys=[keys.USAGE, keys.USAGE_WEEKS], args=[HALF_LIFE_S, week_of(now), *words])
        return {owner.decode(): float(value) for owner, value in zip(answer[::2], answer[1::2], strict=True)}

    def weeks(self) -> list[Week]:
        """The use by week and owner, the latest week first."""
        by_week: dict[tuple[str, str], Used] = {}
        fields: Any = self._redis.hgetall(keys.USAGE_WEEKS)
        for field, value in fields.items():
            week, resource, owner = field.decode().split(" ", 2)
            used = by_week.get((week, owner), Used())
            amount = float(value)
            by_week[week, owner] = used._replace(slot_s=amount) if resource == "slots" else used._replace(gpu_s=amount)
        self._forget_old(fields)
        latest_first = sorted({week for week, _ in by_week}, reverse=True)[:_KEPT_WEEKS]
        return [
            Week(week, owner, by_week[week, owner])
            for week in latest_first
            for owner in sorted(owner for each, owner in by_week if each == week)
        ]

    def _forget_old(self, fields: Mapping[bytes, bytes]) -> None:
        weeks = sorted({field.split(b" ", 1)[0] for field in fields}, reverse=True)[:_KEPT_WEEKS]
        if old := [field for field in fields if field.split(b" ", 1)[0] not in weeks]:
            self._redis.hdel(keys.USAGE_WEEKS, *old)


def week_of(now: float) -> str:
    """The week of a time, as ISO 8601 has it, in UTC: `2026-W48`."""
    year, week, _ = datetime.fromtimestamp(now, UTC).isocalendar()
    return f"{year}-W{week:02d}"
