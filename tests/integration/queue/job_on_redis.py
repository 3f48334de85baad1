"""One job on a real server, and a view of all that Redis holds of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallelrun_core.folder.session_keys import SessionKey, read_key
from parallelrun_core.ids import new_job_id, new_session
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.leader_queue import LeaderQueue, Published
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.seals import Seal, Seals
from parallelrun_core.wire.leasing import Delivery, TurnReports
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import Outcome, encode
from parallelrun_core.wire.states import JobState
from tests.unit.core.factories import failed, outcome

if TYPE_CHECKING:
    from redis import Redis

LONG_MS = 600_000
"""A lease that no test outlives."""


@dataclass
class Session:
    """An agent's session: its queue, and the name that its tokens begin with."""

    name: str
    queue: AgentQueue

    def lease(self, want: int) -> tuple[Delivery, ...]:
        return self.queue.turn("join", TurnReports(), want).deliveries


class JobOnRedis:
    """One job that is processing, led by `leader`."""

    def __init__(self, redis: Redis, state: JobState = JobState.PROCESSING) -> None:
        self.redis = redis
        self.job_id = new_job_id()
        self.keys = JobKeys(self.job_id)
        self.registry = Registry(redis)
        self.registry.add_job(self.job_id, submitted=1.0)
        self.force(state)
        self.session_keys: dict[str, bytes] = {}
        """The key of each session."""
        self.seals = Seals(self._key_of)
        self.keys_folder: Path | None = None
        """Where real leaders of the job find them."""
        self.leader = LeaderQueue(redis, self.job_id)
        assert self.leader.acquire("leader", ttl_ms=LONG_MS, folder_term=0) == 1

    def force(self, state: JobState | None) -> None:
        """Put the job into any state, whatever the rules say; None: Redis doesn't know it."""
        if state is None:
            self.redis.delete(self.keys.job)
        else:
            self.redis.hset(self.keys.job, "state", state)

    def agent(self, node: str = "node", lease_ms: int = LONG_MS, generation: int = 0) -> Session:
        session = new_session(node)
        queue = AgentQueue(
            self.redis, self.job_id, session=session, node=node, lease_ms=lease_ms, generation=generation,
            seal=self.seal(session),
        )  # fmt: skip
        return Session(session, queue)

    def seal(self, session: str = "concatenator-1") -> Seal:
        """The seal of a new session."""
        key = SessionKey(self.keys_folder or Path("/"), session)
        if self.keys_folder is not None:
            key.publish()
        self.session_keys[session] = key.value
        return Seal(session, key.value)

    def _key_of(self, session: str) -> bytes | None:
        if self.keys_folder is not None:
            return read_key(self.keys_folder, session)
        return self.session_keys.get(session)

    def entries(self, after: bytes = b"0-0", block_ms: int | None = None) -> list[StreamEntry]:
        """What the leader reads in the job's outcome stream."""
        return self.leader.read_entries(after, self.seals, block_ms=block_ms, count=100_000)

    def reopen(self) -> None:
        """The user lets the job go on, which has ended, and the leader puts it all up anew."""
        self.registry.retire(self.job_id, term=self.leader.term)
        self.reopen_retired()

    def reopen_retired(self) -> None:
        """The same of a job that its leader has retired."""
        self.registry.reopen(self.job_id, submitted=1.0, generation=self.leader.generation + 1)
        assert self.leader.acquire("leader", ttl_ms=LONG_MS, folder_term=0)
        self.force(JobState.PROCESSING)
        self.leader.generation += 1

    def publish(self, count: int) -> Published:
        first = self.leader.checkpoint()
        return self.leader.publish(first, [message(first + number) for number in range(count)])

    def expire(self, *sessions: Session) -> None:
        """Let the leases of these sessions have run out just now, by Redis' clock."""
        for session in sessions:
            self.redis.zadd(self.keys.sessions, {session.name: 1})

    def ready(self) -> list[int]:
        found: Any = self.redis.lrange(self.keys.ready, 0, -1)
        return [int(raw) for raw in found]

    def leases(self) -> dict[int, str]:
        return self.leader.leases()

    def expiries(self) -> list[float]:
        """When the sessions' leases end, ms of Redis' clock."""
        found: Any = self.redis.zrange(self.keys.sessions, 0, -1, withscores=True)
        return [score for _, score in found]

    def messages(self) -> set[int]:
        found: Any = self.redis.hkeys(self.keys.messages)
        return {int(raw) for raw in found}

    def charged(self) -> dict[str, dict[int, int]]:
        """What Redis keeps of failed tries and lost deliveries."""
        found: dict[str, Any] = {name: self.redis.hgetall(getattr(self.keys, name)) for name in ("tries", "lost")}
        return {name: {int(raw): int(count) for raw, count in counts.items()} for name, counts in found.items()}

    def outcomes(self) -> list[Outcome]:
        """All that the leader would read now."""
        return [each for entry in self.entries() for each in entry.outcomes]

    def events(self) -> list[tuple[str, str]]:
        """`(event, data)` of all that those who watch have been notified of."""
        entries: Any = self.redis.xrange(self.keys.events)
        return [(fields[b"event"].decode(), fields[b"data"].decode()) for _, fields in entries]

    def everything(self) -> dict[bytes, Any]:
        """Each key of the job with its value, to compare before and after."""
        found: dict[bytes, Any] = {}
        keys: Any = self.redis.keys(f"*{self.job_id}*")
        for key in sorted(keys):
            kind: Any = self.redis.type(key)
            match kind:
                case b"hash":
                    found[key] = self.redis.hgetall(key)
                case b"list":
                    found[key] = self.redis.lrange(key, 0, -1)
                case b"zset":
                    found[key] = self.redis.zrange(key, 0, -1)
                case b"set":
                    found[key] = self.redis.smembers(key)
                case b"stream":
                    found[key] = self.redis.xrange(key)
                case _:
                    found[key] = self.redis.get(key)
        return found


def successor(job: JobOnRedis, name: str = "successor", folder_term: int = 0) -> LeaderQueue:
    """Another process leads from now on, as after the first one's key has run out."""
    job.redis.delete(job.keys.leader)
    queue = LeaderQueue(job.redis, job.job_id)
    assert queue.acquire(name, ttl_ms=LONG_MS, folder_term=folder_term)
    return queue


def message(mini_batch: int) -> bytes:
    return encode_files([(b"/in", [b"file-%d" % mini_batch, b"other"])], 2)


def decided(deliveries: Iterable[Delivery]) -> TurnReports:
    """Reports that these are done."""
    return TurnReports(
        decided=[
            (each.mini_batch, each.token, encode(outcome(each.mini_batch, token=each.token, tries=each.tries + 1)))
            for each in deliveries
        ]
    )


def retried(deliveries: Iterable[Delivery], *, charged: int = 1, pause_ms: int = 0, died: bool = False) -> TurnReports:
    """Reports that a try of each of these failed, and another may follow, after a pause."""
    return TurnReports(
        retries=[
            (
                each.mini_batch,
                each.token,
                encode(failed(each.mini_batch, status="retry", token=each.token)),
                charged,
                pause_ms,
                died,
            )
            for each in deliveries
        ]
    )


def returned(deliveries: Iterable[Delivery]) -> TurnReports:
    """Reports that these were never started."""
    return TurnReports(returns=[(each.mini_batch, each.token) for each in deliveries])
