"""The calls of one job's workers on this node that wait for permits of one limit. Pure bookkeeping, no I/O."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from parallelrun_core.store.permits import HELD_MS, Call

_MOST_AT_ONCE: Final = 100
"""Calls for which permits are asked together."""
_KEEP_EVERY_S: Final = HELD_MS / 1000 / 4


class WaitingCall(NamedTuple):
    caller: tuple[Any, int]
    """The worker's connection, and the call's number there."""
    call: Call


class PermitQueue:
    """The queue of one job for one limit on one node. Times are monotonic."""

    def __init__(self) -> None:
        self._waiting: deque[WaitingCall] = deque()
        self._granted: list[tuple[float, int, WaitingCall]] = []
        self._number = 0
        self._ask_at = 0.0
        self._keep_at = 0.0
        self.held: dict[tuple[Any, int], str] = {}
        """The holders of the permits that calls have, by caller."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._granted)

    @property
    def is_unused(self) -> bool:
        """Return whether nobody waits and nobody holds a permit."""
        return not (self._waiting or self._granted or self.held)

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many calls wait for permits, and how many have one."""
        return len(self._waiting), len(self._granted) + len(self.held)

    def add(self, waiting: WaitingCall) -> None:
        self._waiting.append(waiting)

    def next_calls(self, now: float) -> list[Call]:
        """Return the calls for which permits are to be asked now."""
        if now < self._ask_at:
            return []
        return [self._waiting[at].call for at in range(min(len(self._waiting), _MOST_AT_ONCE))]

    def grant(self, starts_s: Sequence[float], wait_s: float, now: float) -> None:
        """Take over what was given for the first calls: when each may begin, and when to ask for the others."""
        for start_s in starts_s:
            self._number += 1
            heapq.heappush(self._granted, (now + start_s, self._number, self._waiting.popleft()))
        self._ask_at = now + wait_s

    def retry_at(self, then: float) -> None:
        """Ask for nothing before then."""
        self._ask_at = then

    def due(self, now: float) -> list[WaitingCall]:
        """Return the calls that may begin now; they hold their permits from now on."""
        calls = []
        if not self.held:
            self._keep_at = now + _KEEP_EVERY_S
        while self._granted and self._granted[0][0] <= now:
            _, _, waiting = heapq.heappop(self._granted)
            self.held[waiting.caller] = waiting.call.holder
            calls.append(waiting)
        return calls

    def end(self, callers: Iterable[tuple[Any, int]]) -> list[str]:
        """Forget calls that have ended or whose workers are gone; returns the holders of their permits."""
        gone = set(callers)
        holders = [self.held.pop(caller) for caller in gone & self.held.keys()]
        granted = [each for each in self._granted if each[2].caller in gone]
        if granted:
            self._granted = [each for each in self._granted if each[2].caller not in gone]
            heapq.heapify(self._granted)
        self._waiting = deque(each for each in self._waiting if each.caller not in gone)
        return holders + [waiting.call.holder for _, _, waiting in granted]

    def callers(self) -> list[tuple[Any, int]]:
        """Return all callers that wait or hold a permit."""
        return [*self.held, *(each.caller for each in self._waiting), *(each[2].caller for each in self._granted)]

    def refuse(self) -> list[WaitingCall]:
        """Return all calls that wait, which wait no more."""
        waiting = [*self._waiting, *(each[2] for each in self._granted)]
        self._waiting.clear()
        self._granted.clear()
        return waiting

    def to_keep(self, now: float) -> list[str]:
        """Return the holders of permits whose calls go on, when it is time to say so."""
        if now < self._keep_at:
            return []
        self._keep_at = now + _KEEP_EVERY_S
        return list(self.held.values())

    def wake_at(self) -> float:
        """Return when there is something to do next; infinity: nothing."""
        ask = self._ask_at if self._waiting else float("inf")
        first = self._granted[0][0] if self._granted else float("inf")
        return min(ask, first, self._keep_at if self.held else float("inf"))
