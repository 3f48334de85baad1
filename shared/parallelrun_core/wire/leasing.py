"""Leases of mini-batches: what a turn of an agent says and brings, and the limits of a job's queue. Plain data: nothing
here knows Redis."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from parallelrun_core.wire.states import JobState

LEASE_S: Final = 8.0
"""How long a silent agent keeps its mini-batches, unless the setting `lease_seconds` says otherwise."""
MAX_REPORTS: Final = 1000
"""Reports of one kind that fit in a turn: Lua can't unpack much more in one command."""
MAX_LEASES: Final = 1000
"""Mini-batches that one turn leases at most, for the same reason."""
RENEW_AFTER: Final = 1 / 50
"""The part of a lease after which a turn renews it: quick turns need not write each time, and agents stop trusting a
lease long before its last fiftieth."""

Mode = Literal["join", "stay", "leave"]
"""What a turn does with the session of its node."""
LEADER_S: Final = 5.0
"""How long a silent master keeps leading a job, unless the setting `leader_seconds` says otherwise."""
LONGEST_PAUSE_MS: Final = 30_000
"""The longest pause with which a leader resigns; nobody leads the job meanwhile."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A mini-batch handed to this agent, under one token."""

    mini_batch: int
    token: str
    tries: int
    """Tries that failed before this delivery."""
    is_suspect: bool
    """True: a worker died with it, or its node was lost, so nothing should be queued behind it."""
    message: bytes


class TurnReports(msgspec.Struct):
    """The reports of an agent's next turn: encoded outcomes by id and token; of retries, also the tries charged, for
    how many milliseconds no node begins the next one, and whether it is suspect from now on."""

    decided: list[tuple[int, str, bytes]] = []
    retries: list[tuple[int, str, bytes, int, int, bool]] = []
    returns: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self.decided) + len(self.retries) + len(self.returns)

    def __bool__(self) -> bool:
        return bool(self.decided or self.retries or self.returns)

    def tokens(self) -> list[str]:
        tokens = [report[1] for report in self.decided]
        tokens += [report[1] for report in self.retries]
        tokens += [token for _, token in self.returns]
        return tokens

    def split(self, limit: int = MAX_REPORTS) -> tuple[TurnReports, TurnReports]:
        """The reports that fit in one turn, and the rest."""
        now = TurnReports(self.decided[:limit], self.retries[:limit], self.returns[:limit])
        return now, TurnReports(self.decided[limit:], self.retries[limit:], self.returns[limit:])


class Turn(msgspec.Struct, frozen=True):
    state: JobState | None
    """The job's state; None when Redis doesn't know the job, or only another generation of it."""
    lost: bool = False
    """This session has been given up: its mini-batches belong to others now."""
    ready: int = 0
    """Mini-batches that are left to lease."""
    refused: int = 0
    """Reports that came too late: their lease had passed to another session, or the job had ended."""
    deliveries: tuple[Delivery, ...] = ()
    is_closed: bool = False
    """The job's budget is used up: the node finishes what runs, and leaves."""


def longest_ms(ttl_ms: int) -> int:
    """The longest time that leadership with this time to live can last. A longer one was granted by another clock."""
    return 2 * ttl_ms + LONGEST_PAUSE_MS
