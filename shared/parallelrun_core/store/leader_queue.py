"""The leader's side of a job's queue: lead, publish, take note of outcomes, reap lost sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from parallelrun_core import message
from parallelrun_core.errors import Fenced
from parallelrun_core.outcome import Failure, Outcome, decode_list
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.scripts import script

if TYPE_CHECKING:
    from redis import Redis

MAX_MESSAGES = 1000
"""Messages in one publishing call: Lua can't unpack much more in one command."""

MAX_NEWS = 200
"""Entries of the outcome stream that are read at once."""

PhaseName = Literal["INIT", "SHUTDOWN"]


class InitFailure(msgspec.Struct, array_like=True, frozen=True):
    """A worker that died or raised before its first mini-batch."""

    node: str
    process: str
    failure: Failure
    started: float = 0.0
    seconds: float = 0.0


class Phase(msgspec.Struct, array_like=True, frozen=True):
    """That a worker's init() or shutdown() has ended."""

    node: str
    process: str
    name: PhaseName
    started: float
    """Seconds since the epoch on the node's clock."""
    seconds: float
    failure: Failure | None = None


class Concatenated(msgspec.Struct, array_like=True, frozen=True):
    """What the concatenator made, or why it could not."""

    path: str
    length: int
    sha256: str
    problem: str = ""
    notes: list[str] = []
    """What the user should know of it."""
    is_postponed: bool = False
    """Nothing was made, for a reason that may pass: the disk is full, or the service was told to stop."""


@dataclass(frozen=True, slots=True)
class Published:
    """What stands on Redis after a publishing call."""

    next_id: int
    """The checkpoint: id of the mini-batch to publish next."""
    outstanding: int
    """Published and not decided."""
    ready: int


@dataclass(frozen=True, slots=True)
class Reaped:
    """What the end of sessions brought."""

    sessions: int
    returned: int
    given_up: int


@dataclass(frozen=True, slots=True)
class News:
    """One entry of the outcome stream, decoded: only what it carries is set."""

    entry_id: bytes
    outcomes: tuple[Outcome, ...] = ()
    init_failure: InitFailure | None = None
    phases: tuple[Phase, ...] = ()
    concatenated: Concatenated | None = None
    preparing: str = ""
    """A node that is still making what the workers need. Other entries only wake the leader: a state that changed, a
    session that left."""


_phases_decoder = msgspec.json.Decoder(list[Phase])


class LeaderQueue:
    """One job's queue, as its leader sees it. Raises redis-py's errors, and `Fenced` when another leads."""

    def __init__(self, redis: Redis, job_id: str) -> None:
        self._redis = redis
        self._keys = keys = JobKeys(job_id)
        self.term = 0
        self.generation = 0
        self._lead = script(redis, "lead")
        self._lead_keys = [keys.job, keys.leader]
        self._publish = script(redis, "publish")
        self._publish_keys = [keys.job, keys.ready, keys.messages]
        self._forget = script(redis, "forget")
        self._assign = script(redis, "assign")
        self._speculate = script(redis, "speculate")
        self._reap = script(redis, "reap")
        self._reap_keys = [
            keys.job, keys.ready, keys.messages, keys.leases, keys.tries, keys.lost, keys.sessions, keys.outcomes,
            keys.twins,
        ]  # fmt: skip

    def acquire(self, token: str, *, ttl_ms: int, folder_term: int) -> int:
        """Begin a turn as leader; returns its term, or 0 while another process leads."""
        self.term = int(self._lead(keys=self._lead_keys, args=["acquire", token, ttl_ms, folder_term]))
        return self.term

    def renew(self, token: str, *, ttl_ms: int) -> None:
        """Go on leading.

        Raises:
            Fenced: another term has begun.
        """
        if not self._lead(keys=self._lead_keys, args=["renew", token, ttl_ms, self.term]):
            raise Fenced(f"term {self.term} is over")

    def resign(self, token: str) -> None:
        """Let another process lead at once."""
        self._lead(keys=self._lead_keys, args=["resign", token, 0, self.term])

    def checkpoint(self) -> int:
        """Id of the mini-batch that is to be published next."""
        return int(self._redis.hget(self._keys.job, "published") or 0)

    def publish(self, first: int, messages: list[bytes]) -> Published:
        """Put messages of consecutive ids up for leasing. With none, just look. A job that isn't processing takes none.

        Raises:
            Fenced: another term has begun.
        """
        done, *rest = self._publish(keys=self._publish_keys, args=[self.term, self.generation, first, *messages])
        if rest[0] == b"fenced":
            raise Fenced(f"term {self.term} may not publish")
        if rest[0] == b"ended":
            return Published(first, 0, 0)
        if not done:
            return Published(int(rest[0]), 0, 0)
        return Published(first + len(messages), int(rest[0]), int(rest[1]))

    def news(self, after: bytes, *, block_ms: int | None, count: int = MAX_NEWS) -> list[News]:
        """Entries of the outcome stream behind `after`; waits for the first when `block_ms` is given."""
        answer: Any = self._redis.xread({self._keys.outcomes: after}, count=count, block=block_ms)
        return [self._decode(entry_id, fields) for _, entries in answer or () for entry_id, fields in entries]

    def _decode(self, entry_id: bytes, fields: dict[bytes, bytes]) -> News:
        if records := fields.get(b"r"):
            return News(entry_id, outcomes=tuple(decode_list(records)))
        if mini_batch := fields.get(b"given_up"):
            return News(entry_id, outcomes=(_given_up(int(mini_batch), self.generation, fields),))
        if failure := fields.get(b"init_failed"):
            return News(entry_id, init_failure=msgspec.json.decode(failure, type=InitFailure))
        if phases := fields.get(b"phases"):
            return News(entry_id, phases=tuple(_phases_decoder.decode(phases)))
        if concatenated := fields.get(b"concatenated"):
            return News(entry_id, concatenated=msgspec.json.decode(concatenated, type=Concatenated))
        return News(entry_id, preparing=fields.get(b"preparing", b"").decode())

    def forget(self, up_to: bytes) -> None:
        """Drop the entries up to this one: they are in the decision log.

        Raises:
            Fenced: another term has begun, and its leader may not have read them.
        """
        stamp, _, sequence = up_to.partition(b"-")
        keep = f"{int(stamp)}-{int(sequence) + 1}"
        if not self._forget(keys=[self._keys.job, self._keys.outcomes], args=[self.term, keep]):
            raise Fenced(f"term {self.term} may not trim the stream")

    def reap(self, *, max_lost: int, max_lease_ms: int) -> Reaped:
        """End the sessions whose lease has run out.

        Raises:
            Fenced: another term has begun.
        """
        answer = self._reap(keys=self._reap_keys, args=[self.term, max_lost, max_lease_ms])
        if answer[0] == b"fenced":
            raise Fenced(f"term {self.term} may not reap")
        return Reaped(*map(int, answer))

    def sessions(self) -> Iterator[str]:
        """The agent sessions that work for the job."""
        return (raw.decode() for raw in self._redis.zrange(self._keys.sessions, 0, -1))  # type: ignore[union-attr]

    def leases(self) -> dict[int, str]:
        """The mini-batches that agents hold, with the token of each; a straggler with its second delivery only."""
        return {int(raw): token.decode() for raw, token in self._redis.hgetall(self._keys.leases).items()}  # type: ignore[union-attr]

    def speculate(self, deliveries: list[tuple[int, str]]) -> int:
        """Give these out a second time; returns how many of them were still out.

        Raises:
            Fenced: another term has begun.
        """
        flat = [part for delivery in deliveries for part in delivery]
        keys = [self._keys.job, self._keys.ready, self._keys.leases, self._keys.twins]
        made = int(self._speculate(keys=keys, args=[self.term, *flat]))
        if made < 0:
            raise Fenced(f"term {self.term} may not speculate")
        return made

    def leased(self) -> int:
        """How many mini-batches agents hold."""
        return int(self._redis.hlen(self._keys.leases))

    def assign(self, nodes: list[str]) -> None:
        """Let only these nodes work for the job; every node, when there are none.

        Raises:
            Fenced: another term has begun.
        """
        if not self._assign(keys=[self._keys.job, self._keys.nodes], args=[self.term, *nodes]):
            raise Fenced(f"term {self.term} may not assign nodes")

    def count_crash(self, of: Literal["crashes", "concatenation_crashes"] = "crashes") -> int:
        """Count one more leader, or one more concatenation, that failed; returns how many did."""
        return int(self._redis.hincrby(self._keys.job, of, 1))

    def is_concatenating(self) -> bool:
        """Whether a process that puts the output together is alive, or was a few seconds ago."""
        return bool(self._redis.exists(self._keys.concatenating))

    def show(self, fields: dict[str, str | bytes | int], *, event: tuple[str, bytes] | None = None) -> None:
        """Write what others may read of the job, and tell those who watch."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(self._keys.job, mapping=fields)  # type: ignore[arg-type]
            if event is not None:
                name, data = event
                pipe.hincrby(self._keys.job, "version", 1)
                pipe.xadd(self._keys.events, {"event": name, "data": data}, maxlen=10_000, approximate=True)
            pipe.execute()


def report_init_failure(redis: Redis, job_id: str, failure: InitFailure) -> None:
    """An agent tells the leader that a worker didn't get through `init()`."""
    _tell(redis, job_id, {"init_failed": msgspec.json.encode(failure)})


def report_preparing(redis: Redis, job_id: str, node: str) -> None:
    """An agent tells the leader that it is making the environment of the workers, and will need some time yet."""
    _tell(redis, job_id, {"preparing": node})


def report_phases(redis: Redis, job_id: str, phases: list[Phase]) -> None:
    """An agent tells the leader, for its reports, how long init() and shutdown() took in some workers."""
    _tell(redis, job_id, {"phases": msgspec.json.encode(phases)})


def report_concatenated(redis: Redis, job_id: str, concatenated: Concatenated) -> None:
    """The concatenator tells the leader what it made."""
    _tell(redis, job_id, {"concatenated": msgspec.json.encode(concatenated)})


def begin_concatenating(redis: Redis, job_id: str, *, ttl_ms: int) -> bool:
    """A process is about to put the output together; whether no other does."""
    return bool(redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms, nx=True))


def go_on_concatenating(redis: Redis, job_id: str, *, ttl_ms: int) -> None:
    """The process that puts the output together is still alive."""
    redis.set(JobKeys(job_id).concatenating, 1, px=ttl_ms)


def end_concatenating(redis: Redis, job_id: str) -> None:
    """The process that put the output together has ended."""
    redis.delete(JobKeys(job_id).concatenating)


def _tell(redis: Redis, job_id: str, entry: dict[str, str | bytes]) -> None:
    """Add an entry for the leader. A job that was retired has no stream any more, and who comes too late makes none."""
    redis.xadd(JobKeys(job_id).outcomes, entry, nomkstream=True)  # type: ignore[arg-type]


def _given_up(mini_batch: int, generation: int, fields: dict[bytes, bytes]) -> Outcome:
    raw = fields[b"message"]
    return Outcome(
        mini_batch=mini_batch,
        generation=generation,
        status="failed",
        token="",
        tries=int(fields[b"tries"]),
        node="",
        process="",
        part="",
        offset=0,
        length=0,
        crc=0,
        items=message.decode(raw).items if raw else 0,
        rows=0,
        started=0.0,
        elapsed_s=0.0,
        run_s=0.0,
        process_s=0.0,
        failure=Failure("NODE_LOST", "Given up: the nodes that held it were lost too often (see lost_leases)."),
    )
