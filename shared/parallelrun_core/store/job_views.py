"""Views of the mini-batches that are on Redis, for the API: of one job, and of all together."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from parallelrun_core.store import keys as all_keys
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.states import JobState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parallelrun_core.store.connection import Redis

_STATES: Final = {state.value.encode(): state for state in JobState}
"""A later release may have others, of which this one knows nothing."""
_SILENT_S: Final = 30.0
"""A node says at least every five seconds what its workers do; its clock may be behind."""
_RECOVERS_S: Final = 200.0
"""RECOVERS_MS of `permits.lua`."""


@dataclass(frozen=True, slots=True)
class Census:
    """Some jobs and their mini-batches, counted."""

    states: Counter[JobState]
    ready: int
    """Mini-batches that wait for a node, those included that pause after a failed try."""
    leased: int
    """Mini-batches that agents hold."""


class Holding(NamedTuple):
    """The place of one mini-batch that is not decided."""

    before: int | None
    """Mini-batches that are handed out before it; None: it doesn't wait for a node."""
    node: str
    """The node that holds it; empty: none does."""
    tries: int
    """Tries that have failed."""
    lost: int
    """Deliveries that ended with the loss of their node."""
    pause_s: float = 0.0
    """Seconds until its next try may begin; 0: it doesn't pause."""


class LimitNow(NamedTuple):
    """The state of a limit on calls of a service."""

    pause_s: float
    """Seconds until the next call may begin."""
    share: float
    """The part of its rate that is left since the service has refused calls; 1: all of it."""


class JobViews:
    """All jobs. Raises redis-py's errors when the server is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def running(self, job_id: str) -> dict[int, str]:
        """The mini-batches that agents hold, each with its node."""
        leases: Any = self._redis.hgetall(JobKeys(job_id).leases)
        return {int(raw): _node_of(stem.decode()) for raw, stem in leases.items()}

    def nodes_at_work(self, job_id: str) -> list[str]:
        """The nodes that work for a job, by name."""
        seconds, _ = self._redis.time()
        alive: Any = self._redis.zrangebyscore(JobKeys(job_id).sessions, f"({seconds * 1000}", "+inf")
        return sorted({_node_of(session.decode()) for session in alive})

    def at_work(self, job_id: str) -> dict[str, NodeWork]:
        """The workers of each node that works for a job, as it has said lately. What is older is left out: the node
        was silent since."""
        keys = JobKeys(job_id)
        seconds, micros = self._redis.time()
        reports: Any = self._redis.hgetall(keys.at_work)
        oldest = seconds + micros * 1e-6 - _SILENT_S
        nodes = {}
        for raw, text in sorted(reports.items()):
            with suppress(msgspec.DecodeError):
                report = msgspec.json.decode(text, type=NodeWork)
                if report.at >= oldest:
                    nodes[raw.decode()] = report
        return nodes

    def ready(self, job_id: str, first: int, count: int) -> list[int]:
        """Up to `count` mini-batches that wait for an agent, in order, from the `first` one on. Those come last that
        pause after a failed try."""
        keys = JobKeys(job_id)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.lrange(keys.ready, first, first + count - 1)
            pipe.llen(keys.ready)
            pipe.zrange(keys.delayed, 0, first + count - 1)
            ready, ready_count, delayed = pipe.execute()
        return [int(raw) for raw in (*ready, *delayed[max(0, first - ready_count) :])[:count]]

    def holding(self, job_id: str, mini_batch: int) -> Holding:
        """Return where one mini-batch is."""
        keys = JobKeys(job_id)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.lpos(keys.ready, str(mini_batch))
            for name in (keys.leases, keys.tries, keys.lost):
                pipe.hget(name, str(mini_batch))
            pipe.zscore(keys.delayed, str(mini_batch))
            pipe.time()
            before, stem, tries, lost, until_ms, (seconds, micros) = pipe.execute()
        pause_s = max(0.0, until_ms / 1000 - seconds - micros / 1e6) if until_ms else 0.0
        return Holding(before, _node_of(stem.decode()) if stem else "", int(tries or 0), int(lost or 0), pause_s)

    def chosen_nodes(self, job_id: str) -> frozenset[str]:
        """Return the nodes that were chosen for a job which asks for a number of them."""
        raw: Any = self._redis.smembers(JobKeys(job_id).nodes)
        return frozenset(name.decode() for name in raw)

    def limits(self, names: Sequence[str]) -> dict[str, LimitNow]:
        """Return how these rate limits stand; without those that nobody uses."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            for name in names:
                pipe.hmget(all_keys.of_limit(name)[0], "requests", "share", "share_at")
            (seconds, micros), *answers = pipe.execute()
        now_s = seconds + micros / 1e6
        return {
            name: LimitNow(
                pause_s=float(requests) / 1000 - now_s,
                share=min(1.0, float(share) + (now_s - float(share_at) / 1000) / _RECOVERS_S) if share else 1.0,
            )
            for name, (requests, share, share_at) in zip(names, answers, strict=True)
            if requests
        }

    def census(self, job_ids: Sequence[str]) -> Census:
        """Count the jobs that Redis knows by state, and the mini-batches of all of them."""
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                keys = JobKeys(job_id)
                pipe.hget(keys.job, "state")
                pipe.llen(keys.ready)
                pipe.zcard(keys.delayed)
                pipe.hlen(keys.leases)
            answers = pipe.execute()
        states = Counter(_STATES[raw] for raw in answers[0::4] if raw in _STATES)
        return Census(states, ready=sum(answers[1::4]) + sum(answers[2::4]), leased=sum(answers[3::4]))


def _node_of(stem: str) -> str:
    """The node that holds a lease: its token begins with the session, and the session with the node."""
    return stem.partition("/")[0].rpartition("-")[0]


def report_at_work(redis: Redis, job_id: str, node: str, report: NodeWork) -> None:
    """Replace what a node has said before. Raises redis-py's errors."""
    redis.hset(JobKeys(job_id).at_work, node, msgspec.json.encode(report))
