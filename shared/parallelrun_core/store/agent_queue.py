"""The agent's side of a job's queue: one call per turn reports, renews and leases."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from itertools import compress, count, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from parallelrun_core.outcome import encode_lines
from parallelrun_core.states import JobState
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.scripts import QuickScript, script

if TYPE_CHECKING:
    from redis import Redis

MAX_REPORTS = 1000
"""Reports of one kind that fit in a turn: Lua can't unpack much more in one command."""
MAX_LEASES: Final = 1000
"""Mini-batches that one turn leases at most, for the same reason."""
RENEW_AFTER = 1 / 50
"""The part of a lease after which a turn renews it: quick turns need not write each time, and agents stop trusting a
lease long before its last fiftieth."""

Mode = Literal["join", "stay", "leave"]

_RECORD: Final = itemgetter(2)
_STATES: Final = {state.value.encode(): state for state in JobState}


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One mini-batch handed to this agent, under one token."""

    mini_batch: int
    token: str
    tries: int
    """Tries that failed before this delivery."""
    lost: int
    """Earlier deliveries that were lost with their node."""
    message: bytes

    @property
    def is_suspect(self) -> bool:
        """It may have killed a worker or a node before, so nothing should be queued behind it."""
        return self.tries > 0 or self.lost > 0


class Reports(msgspec.Struct):
    """What an agent reports in its next turn: encoded outcomes by id and token."""

    decided: list[tuple[int, str, bytes]] = []
    retries: list[tuple[int, str, bytes]] = []
    returns: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self.decided) + len(self.retries) + len(self.returns)

    def tokens(self) -> list[str]:
        """The tokens of the deliveries that these reports end."""
        return [report[1] for report in (*self.decided, *self.retries)] + [token for _, token in self.returns]

    def words(self) -> list[Any]:
        """As arguments of `turn.lua`."""
        by_kind: dict[str, Sequence[tuple[Any, ...]]]
        by_kind = {"decided": self.decided, "retries": self.retries, "returns": self.returns}
        said = {kind: _ids_and_stems(reports) for kind, reports in by_kind.items() if reports}
        records = [encode_lines(list(map(_RECORD, reports))) for reports in (self.decided, self.retries)]
        return [msgspec.msgpack.encode(said), *records]

    def split(self, limit: int = MAX_REPORTS) -> tuple[Reports, Reports]:
        """The reports that fit in one turn, and the rest."""
        now = Reports(self.decided[:limit], self.retries[:limit], self.returns[:limit])
        return now, Reports(self.decided[limit:], self.retries[limit:], self.returns[limit:])


def _ids_and_stems(reports: Sequence[tuple[Any, ...]]) -> tuple[list[str], list[str]]:
    mini_batches, tokens, *_ = zip(*reports, strict=True)
    ids = list(map(str, mini_batches))
    return ids, list(map(str.removesuffix, tokens, ids))


class Turn(msgspec.Struct, frozen=True):
    """The result of a turn."""

    state: JobState | None
    """The job's state; None when Redis doesn't know the job, or only another generation of it."""
    lost: bool = False
    """This session has been given up: its mini-batches belong to others now."""
    ready: int = 0
    """Mini-batches that are left to lease."""
    refused: int = 0
    """Reports that came too late: their lease had passed to another session, or the job had ended."""
    deliveries: tuple[Delivery, ...] = ()


def _deliveries(
    stem: str,
    ids: Sequence[bytes] = (),
    messages: Sequence[Any] = (),
    tries: Iterable[bytes | None] = (),
    lost: Iterable[bytes | None] = (),
) -> tuple[Delivery, ...]:
    """What a turn leased."""
    tokens = [stem + name for name in b",".join(ids).decode().split(",")]
    made = map(Delivery, map(int, ids), tokens, _counts(tries), _counts(lost), messages)
    return tuple(compress(made, messages))  # what has no message was decided meanwhile


def _counts(found: Iterable[bytes | None]) -> Iterable[int]:
    """Most answers have none: nothing has failed or been lost."""
    return (int(each or 0) for each in found) if found else repeat(0)


class AgentQueue:
    """One job's queue, as one agent session sees it. Not thread-safe. Raises redis-py's errors."""

    def __init__(
        self, redis: Redis, job_id: str, *, session: str, node: str, lease_ms: int, generation: int = 0
    ) -> None:
        self.job_id = job_id
        self._session = session
        # No two lease calls share one, not even those of two sessions with the same name.
        self._nonces = count(secrets.randbits(48))
        keys = JobKeys(job_id)
        turn_keys = [
            keys.job, keys.ready, keys.messages, keys.leases, keys.tries, keys.lost, keys.sessions, keys.nodes,
            keys.outcomes, keys.twins,
        ]  # fmt: skip
        self._turn = QuickScript(redis, script(redis, "turn"), turn_keys, [session, node, generation, lease_ms])
        self._renew_every_s = lease_ms / 1000 * RENEW_AFTER
        self._renew_at = 0.0
        self._reassert = script(redis, "reassert")
        self._reassert_keys = [keys.ready, keys.leases, keys.twins]

    def turn(self, mode: Mode, reports: Reports, want: int) -> Turn:
        """Report, renew the session's lease, and lease up to `want` mini-batches (at most `MAX_LEASES`).

        Running it twice with the same reports, as after a lost answer, does no harm: they are refused the second time.
        """
        now, renew_at = time.monotonic(), self._renew_at
        renews = mode == "join" or (mode == "stay" and now >= renew_at)
        stem = f"{self._session}/{next(self._nonces):x}."
        args: list[Any] = ["renew" if renews and mode == "stay" else mode, min(want, MAX_LEASES), stem]
        if reports:
            args += reports.words()
        self._renew_at = 0.0  # if no answer comes, Redis may also have forgotten the previous renewal
        answer: list[Any] = self._turn(args)
        self._renew_at = now + self._renew_every_s if renews else renew_at
        if answer[0] == b"gone":
            return Turn(None)
        if answer[0] == b"lost":
            return Turn(_STATES[answer[1]], lost=True)
        return Turn(_STATES[answer[0]], False, answer[1], answer[2], _deliveries(stem, *answer[3:]))

    def reassert(self, tokens: Iterable[str]) -> int:
        """Name what this session holds; what Redis believes it to hold beyond that goes back. Returns how many did."""
        return int(self._reassert(keys=self._reassert_keys, args=[self._session, *tokens]))
