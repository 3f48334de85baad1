"""Permits for calls of services that somebody else runs: one rate for all nodes, kept by Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from parallelrun_core.store import keys
from parallelrun_core.store.scripts import script

if TYPE_CHECKING:
    from redis import Redis

    from parallelrun_core.limits.definition import Limit

HELD_MS: Final = 30_000
"""How long a call holds its permit unless its agent says that it goes on: so long are those of a dead node lost."""
HORIZON_MS: Final = 500
"""How far ahead permits are given: a call of Redis for each would take longer than the calls are apart."""


class Call(NamedTuple):
    holder: str
    """Names the permit, for `give_back` and `keep`."""
    tokens: int = 0


class Party(NamedTuple):
    """A job on a node that asks for permits: permits are fair among jobs, and among the nodes of a job."""

    job_id: str
    node: str
    waiting: int
    """Its calls that wait, those for which it asks included."""
    held: int
    """Permits that it has."""


class Granted(NamedTuple):
    """The permits that were given of those that were asked for."""

    starts_s: list[float]
    """For the first calls, in how many seconds each may begin."""
    wait_s: float
    """Seconds after which to ask for the others; 0: there are none."""


class Permits:
    """The permits of the cluster's limits. Raises redis-py's errors."""

    def __init__(self, redis: Redis) -> None:
        self._script = script(redis, "permits")

    def take(self, limit: Limit, party: Party, calls: Sequence[Call]) -> Granted:
        """Take permits for these calls of a party, or for the first of them."""
        rates = (limit.requests_per_minute or 0, limit.tokens_per_minute or 0, limit.in_flight or 0)
        pairs = [word for call in calls for word in call]
        wait_ms, *starts_ms = self._script(
            keys=keys.of_limit(limit.name), args=["take", *rates, HELD_MS, HORIZON_MS, *party, *pairs]
        )
        return Granted([start / 1000 for start in starts_ms], wait_ms / 1000)

    def give_back(self, limit_name: str, holders: Sequence[str]) -> None:
        self._script(keys=keys.of_limit(limit_name), args=["back", *holders])

    def keep(self, limit_name: str, holders: Sequence[str]) -> None:
        self._script(keys=keys.of_limit(limit_name), args=["keep", HELD_MS, *holders])

    def slow_down(self, limit_name: str, for_s: float) -> None:
        """Let no call begin for so long, and fewer afterwards: the service has answered that it was too much."""
        self._script(keys=keys.of_limit(limit_name), args=["slow", int(for_s * 1000)])
