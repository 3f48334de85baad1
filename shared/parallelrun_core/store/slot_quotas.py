"""Quotas of slots and nodes as agents read them: the API, which has the documents, writes them to Redis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from parallelrun_core.store import keys

if TYPE_CHECKING:
    from redis import Redis

EVERYBODY: Final = "everybody"
"""The name of the quota of those who have none of their own."""


class SlotQuota(NamedTuple):
    """The most that an owner may have at the same time in the cluster; None: any number.

    On Redis it is a text: its fields with blanks between them, `-` for any number.
    """

    slots: int | None = None
    nodes: int | None = None


class SlotQuotas:
    """The quotas of a cluster. Raises redis-py's errors when the server is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def replace(self, quotas: Mapping[str, SlotQuota]) -> None:
        """Replace all quotas, by owner."""
        # An owner without a name has none, so the key is there even if there are no quotas: `exists` asks for that.
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.delete(keys.QUOTAS)
            for name, quota in {**quotas, "": SlotQuota()}.items():
                pipe.hset(keys.QUOTAS, name, " ".join("-" if most is None else str(most) for most in quota))
            pipe.execute()

    def exists(self) -> bool:
        """Return whether Redis has them: it may have forgotten."""
        return bool(self._redis.exists(keys.QUOTAS))

    def all(self) -> dict[str, SlotQuota]:
        """Return those that limit somebody, by owner."""
        raw: Any = self._redis.hgetall(keys.QUOTAS)
        quotas = {name.decode(): SlotQuota(*map(_limit, text.split())) for name, text in raw.items()}
        return {name: quota for name, quota in quotas.items() if name and quota != SlotQuota()}


def _limit(word: bytes) -> int | None:
    return None if word == b"-" else int(word)
