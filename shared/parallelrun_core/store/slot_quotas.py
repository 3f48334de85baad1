"""Quotas of slots and nodes as agents read them: the API, which has the documents, tells Redis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.store import keys

if TYPE_CHECKING:
    from redis import Redis

EVERYBODY: Final = "everybody"
"""The name of the quota of those who have none of their own."""
Limits = tuple[int | None, int | None]
"""The most slots and nodes; None: any number."""


class SlotQuotas:
    """The quotas of a cluster. Raises redis-py's errors when the server is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def tell(self, limits: Mapping[str, Limits]) -> None:
        texts = {name: f"{_word(slots)} {_word(nodes)}" for name, (slots, nodes) in limits.items()}
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.delete(keys.QUOTAS)
            for name, words in {**texts, "": "- -"}.items():  # whoever runs the server has none; and so it is there
                pipe.hset(keys.QUOTAS, name, words)
            pipe.execute()

    def are_told(self) -> bool:
        """Return whether Redis has them: it may have forgotten."""
        return bool(self._redis.exists(keys.QUOTAS))

    def all(self) -> dict[str, Limits]:
        """Return those that limit somebody, by owner."""
        raw: Any = self._redis.hgetall(keys.QUOTAS)
        limits = {name.decode(): _limits(words.decode()) for name, words in raw.items()}
        return {name: each for name, each in limits.items() if name and each != (None, None)}


def _word(limit: int | None) -> str:
    return "-" if limit is None else str(limit)


def _limits(words: str) -> Limits:
    slots, _, nodes = words.partition(" ")
    return (None if slots == "-" else int(slots)), (None if nodes == "-" else int(nodes))
