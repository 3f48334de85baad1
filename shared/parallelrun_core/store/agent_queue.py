"""The agent's side of a job's queue: one call per turn reports, renews and leases."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from itertools import compress, count, repeat
from operator import itemgetter
from typing import Any, Final

import msgspec
from redis import Redis

from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.scripts import QuickScript, script
from parallelrun_core.store.seals import Seal
from parallelrun_core.wire.leasing import MAX_LEASES, RENEW_AFTER, Delivery, Mode, Turn, TurnReports
from parallelrun_core.wire.outcome import encode_list
from parallelrun_core.wire.states import JobState

_RECORD: Final = itemgetter(2)
_STATES: Final = {state.value.encode(): state for state in JobState}


def _words(reports: TurnReports, seal: Seal) -> list[Any]:
    """Reports as arguments of `turn.lua`."""
    by_kind: dict[str, Sequence[tuple[Any, ...]]]
    by_kind = {"decided": reports.decided, "retries": reports.retries, "returns": reports.returns}
    columns: dict[str, tuple[Sequence[Any], ...]]
    columns = {kind: _ids_and_stems(entries) for kind, entries in by_kind.items() if entries}
    if reports.retries:
        columns["retries"] += tuple(zip(*reports.retries, strict=True))[3:]
    words: list[Any] = [msgspec.msgpack.encode(columns)]
    for entries in (reports.decided, reports.retries):
        if entries:
            records = encode_list(list(map(_RECORD, entries)))
            words += (records, seal.on("r", records))
        else:
            words += (b"", b"")
    return words


def _ids_and_stems(reports: Sequence[tuple[Any, ...]]) -> tuple[list[str], list[str]]:
    mini_batches, tokens, *_ = zip(*reports, strict=True)
    ids = list(map(str, mini_batches))
    return ids, list(map(str.removesuffix, tokens, ids))


def _deliveries(
    stem: str,
    ids: Sequence[bytes] = (),
    messages: Sequence[Any] = (),
    tries: Iterable[bytes | None] = (),
    lost: Iterable[bytes | None] = (),
) -> tuple[Delivery, ...]:
    tokens = [stem + name for name in b",".join(ids).decode().split(",")]
    # Most answers have neither: nothing has failed or been lost.
    counts = (int(each or 0) for each in tries) if tries else repeat(0)
    suspects = (each is not None for each in lost) if lost else repeat(False)
    deliveries = map(Delivery, map(int, ids), tokens, counts, suspects, messages)
    return tuple(compress(deliveries, messages))  # what has no message was decided meanwhile


class AgentQueue:
    """A job's queue, as one agent session sees it. Not thread-safe. Raises redis-py's errors.

    Args:
        seal: the session's; leaders must be able to read its key before the first report.
    """

    def __init__(
        self, redis: Redis, job_id: str, *, session: str, node: str, lease_ms: int, seal: Seal, generation: int = 0
    ) -> None:
        self.job_id = job_id
        self._session = session
        self._seal = seal
        # No two lease calls share one, not even those of two sessions with the same name.
        self._nonces = count(secrets.randbits(48))
        keys = JobKeys(job_id)
        turn_keys = [
            keys.job, keys.ready, keys.messages, keys.leases, keys.tries, keys.lost, keys.sessions, keys.nodes,
            keys.outcomes, keys.twins, keys.delayed,
        ]  # fmt: skip
        self._turn = QuickScript(redis, script(redis, "turn"), turn_keys, [session, node, generation, lease_ms])
        self._renew_every_s = lease_ms / 1000 * RENEW_AFTER
        self._renew_at = 0.0
        self._reassert = script(redis, "reassert")
        self._reassert_keys = [keys.ready, keys.leases, keys.twins]

    def turn(self, mode: Mode, reports: TurnReports, want: int) -> Turn:
        """Report, renew the session's lease, and lease up to `want` mini-batches (at most `MAX_LEASES`).

        Running it twice with the same reports, as after a lost answer, does no harm: they are refused the second time.
        """
        now, renew_at = time.monotonic(), self._renew_at
        renews = mode == "join" or (mode == "stay" and now >= renew_at)
        stem = f"{self._session}/{next(self._nonces):x}."
        args: list[Any] = ["renew" if renews and mode == "stay" else mode, min(want, MAX_LEASES), stem]
        if reports:
            args += _words(reports, self._seal)
        self._renew_at = 0.0  # if no answer comes, Redis may also have forgotten the previous renewal
        answer: list[Any] = self._turn(args)
        self._renew_at = now + self._renew_every_s if renews else renew_at
        if answer[0] == b"gone":
            return Turn(None)
        if answer[0] == b"lost":
            return Turn(_STATES[answer[1]], lost=True)
        ready = answer[1]
        deliveries = _deliveries(stem, *answer[3:])
        return Turn(_STATES[answer[0]], False, max(0, ready), answer[2], deliveries, is_closed=ready < 0)

    def reassert(self, tokens: Iterable[str]) -> int:
        """Name what this session holds; what Redis believes it to hold beyond that goes back. Returns how many did."""
        return int(self._reassert(keys=self._reassert_keys, args=[self._session, *tokens]))
