"""The leader's side of a job's queue: lead, publish, read outcomes, reap lost sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, Final

import msgspec
from redis import Redis
from redis.client import Pipeline

from parallelrun_core.errors import Fenced
from parallelrun_core.store import fast_path
from parallelrun_core.store.concatenation_lock import is_concatenating
from parallelrun_core.store.fast_path import Command
from parallelrun_core.store.keys import ACTIVE_JOBS, JobKeys
from parallelrun_core.store.outcome_stream import MAX_ENTRIES, StreamEntry, decode_entry
from parallelrun_core.store.scripts import script
from parallelrun_core.store.seals import Seals
from parallelrun_core.wire import message
from parallelrun_core.wire.leasing import longest_ms
from parallelrun_core.wire.outcome import Failure, Outcome
from parallelrun_core.wire.states import JobState

_MOST_OTHERS: Final = 200


@dataclass(frozen=True, slots=True)
class Published:
    """The state of the queue after a publishing call."""

    next_id: int
    """The checkpoint: id of the mini-batch to publish next."""
    outstanding: int
    """Published and not decided."""


@dataclass(frozen=True, slots=True)
class Reaped:
    """The result of ending sessions."""

    sessions: int
    returned: int
    given_up: tuple[Outcome, ...] = ()
    """Mini-batches that were lost with their node too often; named again and again until `confirm_given_up`."""


class LeaderQueue:
    """A job's queue, as its leader sees it. Raises redis-py's errors; what only the leader of the present term may do
    raises `Fenced` once another term has begun."""

    def __init__(self, redis: Redis, job_id: str) -> None:
        self._redis = redis
        self.job_id = job_id
        self._keys = keys = JobKeys(job_id)
        self.term = 0
        self.generation = 0
        self._lead = script(redis, "lead")
        self._lead_keys = [keys.job, keys.leader]
        self._forget = script(redis, "forget")
        self._assign = script(redis, "assign")
        self._speculate = script(redis, "speculate")
        self._republish = script(redis, "republish")
        self._expedite = script(redis, "expedite")
        self._drop = script(redis, "drop")
        self._close = script(redis, "close")
        self._reap = script(redis, "reap")
        self._reap_keys = [
            keys.job, keys.ready, keys.messages, keys.leases, keys.tries, keys.lost, keys.sessions, keys.twins,
            keys.given_up, keys.delayed,
        ]  # fmt: skip

    def acquire(self, token: str, *, ttl_ms: int, folder_term: int) -> int:
        """Begin a term as leader; returns it, or 0 while another process leads."""
        self.term = int(
            self._lead(keys=self._lead_keys, args=["acquire", token, ttl_ms, folder_term, longest_ms(ttl_ms)])
        )
        return self.term

    def renew(self, token: str, *, ttl_ms: int) -> None:
        """Go on leading."""
        if not self._lead(keys=self._lead_keys, args=["renew", token, ttl_ms, self.term]):
            raise Fenced(f"term {self.term} is over")

    def resign(self, token: str, *, pause_ms: int = 0) -> None:
        """Let another process lead: at once, or after a pause in which nobody leads."""
        self._lead(keys=self._lead_keys, args=["resign", token, pause_ms, self.term])

    def wait(self, token: str, *, pause_ms: int, wakes: int) -> bool:
        """Leave the job alone until it is woken, or the pause is over. Returns False if it was woken more often than
        `wakes`."""
        answer = self._lead(keys=self._lead_keys, args=["wait", token, pause_ms, self.term, wakes])
        if not answer:
            raise Fenced(f"term {self.term} is over")
        return bool(answer == 1)

    def checkpoint(self) -> int:
        """Id of the mini-batch to publish next."""
        return int(self._redis.hget(self._keys.job, "published") or 0)

    def published_generation(self) -> int:
        """Return the generation of what was published last."""
        return int(self._redis.hget(self._keys.job, "generation") or 0)

    def publish(self, first: int, messages: list[bytes]) -> Published:
        """Put messages of consecutive ids up for leasing; with none, only read the checkpoint.

        A job that isn't processing takes none.

        The checkpoint moves in the same step, so a leader that dies between two calls leaves nothing published twice
        and nothing skipped. An empty message is decided already, and skipped.
        """
        # Not a script, which would copy and hash each message twice: a change of the job in between undoes all of it.
        while True:
            with fast_path.conversation(self._redis) as ask:
                _, fields = ask(("WATCH", self._keys.job), ("HMGET", self._keys.job, "term", "published", "state"))
                checkpoint = self._checkpoint_to_continue(*fields)
                if checkpoint == first:
                    *_, done = ask(("MULTI",), *self._publishing(first, messages), ("EXEC",))
                    if done is not None:
                        return Published(first + len(messages), outstanding=done[-1])
                else:
                    ask(("UNWATCH",))
                    return Published(first if checkpoint is None else checkpoint, 0)

    def _checkpoint_to_continue(self, term: bytes | None, published: bytes | None, state: bytes | None) -> int | None:
        """The checkpoint; None when the job takes no more."""
        self._check_term(term)
        return int(published or 0) if state == JobState.PROCESSING.value.encode() else None

    def _check_term(self, term: bytes | None) -> None:
        if term != b"%d" % self.term:
            raise Fenced(f"term {self.term} may not publish")

    def _publishing(self, first: int, messages: list[bytes]) -> Iterator[Command]:
        keys, following = self._keys, first + len(messages)
        ids = list(map(str, compress(range(first, following), messages)))
        if ids:
            yield "HSET", keys.messages, *chain.from_iterable(zip(ids, filter(None, messages), strict=True))
            yield "RPUSH", keys.ready, *ids
        if messages:
            yield "HSET", keys.job, "published", following, "generation", self.generation
        yield "HLEN", keys.messages

    def read_entries(
        self, after: bytes, seals: Seals, *, block_ms: int | None, count: int = MAX_ENTRIES
    ) -> list[StreamEntry]:
        """Entries of the outcome stream after `after`; waits for the first when `block_ms` is given.

        Args:
            seals: what isn't sealed by one of these sessions is refused.
        """
        answer: Any = self._redis.xread({self._keys.outcomes: after}, count=count, block=block_ms)
        return [decode_entry(entry_id, fields, seals) for _, entries in answer or () for entry_id, fields in entries]

    def forget(self, up_to: bytes) -> None:
        """Drop the entries up to this one: they are in the decision log. The leader of another term may not have read
        them."""
        stamp, _, sequence = up_to.partition(b"-")
        keep = f"{int(stamp)}-{int(sequence) + 1}"
        if not self._forget(keys=[self._keys.job, self._keys.outcomes], args=[self.term, keep]):
            raise Fenced(f"term {self.term} may not trim the stream")

    def reap(self, *, max_lost: int, max_lease_ms: int, longest_pause_ms: int = 0) -> Reaped:
        """End the sessions whose lease has run out, and make ready what has paused for long enough after a failed try.

        Args:
            longest_pause_ms: no pause is longer; one that seems to be is over.
        """
        answer = self._reap(keys=self._reap_keys, args=[self.term, max_lost, max_lease_ms, longest_pause_ms])
        if answer[0] == b"fenced":
            raise Fenced(f"term {self.term} may not reap")
        sessions, returned, *given_up = answer
        outcomes = (_given_up(mini_batch, raw, tries, self.generation) for mini_batch, raw, tries in given_up)
        return Reaped(int(sessions), int(returned), tuple(outcomes))

    def confirm_given_up(self, mini_batches: Iterable[int]) -> None:
        """Drop these: their decision is durable."""
        keys = [self._keys.job, self._keys.given_up, self._keys.messages]
        if not self._drop(keys=keys, args=[self.term, *mini_batches]):
            raise Fenced(f"term {self.term} may not give up mini-batches")

    def close(self) -> None:
        """Let agents lease nothing more, finish what they run, and leave: the job's budget is used up."""
        if not self._close(keys=[self._keys.job], args=[self.term]):
            raise Fenced(f"term {self.term} may not close the job")

    def sessions(self) -> Iterator[str]:
        """The agent sessions that work for the job."""
        return (raw.decode() for raw in self._redis.zrange(self._keys.sessions, 0, -1))  # type: ignore[union-attr]

    def leases(self) -> dict[int, str]:
        """The mini-batches that agents hold, with the token of each; for a straggler, that of its second delivery."""
        stems: Any = self._redis.hgetall(self._keys.leases)
        return {int(raw): (stem + raw).decode() for raw, stem in stems.items()}

    def speculate(self, deliveries: list[tuple[int, str]]) -> int:
        """Deliver these a second time; returns how many of them were still leased."""
        flat = [word for mini_batch, token in deliveries for word in (mini_batch, token.removesuffix(str(mini_batch)))]
        keys = [self._keys.job, self._keys.ready, self._keys.leases, self._keys.twins]
        count = int(self._speculate(keys=keys, args=[self.term, *flat]))
        if count < 0:
            raise Fenced(f"term {self.term} may not speculate")
        return count

    def expedite(self, messages: list[tuple[int, bytes]]) -> int:
        """Let these be run next, published or not; returns how many of them nobody had.

        Args:
            messages: mini-batches, each with its message.
        """
        keys = [self._keys.job, self._keys.ready, self._keys.messages, self._keys.delayed]
        flat = [word for mini_batch, message in messages for word in (mini_batch, message)]
        count = int(self._expedite(keys=keys, args=[self.term, self.generation, *flat]))
        if count < 0:
            raise Fenced(f"term {self.term} may not publish")
        return count

    def expedited(self) -> frozenset[int]:
        """The mini-batches that were published out of order in this generation: publishing skips them."""
        raw: Any = self._redis.hget(self._keys.job, "expedited") or b""
        generation, _, ids = raw.partition(b":")
        is_of_now = generation == b"%d" % self.generation
        return frozenset(map(int, ids.split(b","))) if is_of_now and ids else frozenset()

    def whereabouts(self) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """The mini-batches that Redis has messages of, those that wait, and those that a living session holds."""
        keys = self._keys
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hkeys(keys.messages)
            pipe.lrange(keys.ready, 0, -1)
            pipe.zrange(keys.delayed, 0, -1)
            pipe.zrange(keys.sessions, 0, -1)
            pipe.hgetall(keys.leases)
            pipe.hgetall(keys.twins)
            decided, ready, delayed, sessions, leases, twins = pipe.execute()
        alive = set(sessions)
        holders = chain(leases.items(), twins.items())
        leased = {int(raw) for raw, stem in holders if stem.partition(b"/")[0] in alive}
        return frozenset(map(int, decided)), frozenset(map(int, (*ready, *delayed))), frozenset(leased)

    def republish(self, last_seen: bytes, messages: list[tuple[int, bytes]]) -> int:
        """Put mini-batches up again that nobody has; returns how many, none if there is a result that wasn't read.

        Args:
            last_seen: the last entry that was read.
            messages: what Redis may have forgotten; empty: as Redis has it.
        """
        keys = self._keys
        named = [
            keys.job, keys.ready, keys.messages, keys.leases, keys.sessions, keys.outcomes, keys.twins, keys.delayed,
        ]  # fmt: skip
        flat = [word for mini_batch, message in messages for word in (mini_batch, message)]
        put = int(self._republish(keys=named, args=[self.term, last_seen, *flat]))
        if put == -1:
            raise Fenced(f"term {self.term} may not publish")
        return max(0, put)

    def counts(self) -> tuple[int, int]:
        """Return how many mini-batches are published and not decided, and how many of them agents hold."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hlen(self._keys.messages)
            pipe.hlen(self._keys.leases)
            outstanding, leased = pipe.execute()
        return int(outstanding), int(leased)

    def assigned(self) -> list[str]:
        """The nodes that an earlier term has assigned; none, if every node may work for the job."""
        return sorted(raw.decode() for raw in self._redis.smembers(self._keys.nodes))  # type: ignore[union-attr]

    def assigned_to_others(self) -> dict[str, frozenset[str]]:
        """The nodes that other active jobs have been assigned, by job, of the first `_MOST_OTHERS` of them."""
        active: Any = self._redis.zrange(ACTIVE_JOBS, 0, _MOST_OTHERS)
        others = [job_id for raw in active if (job_id := raw.decode()) != self.job_id]
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in others:
                pipe.smembers(JobKeys(job_id).nodes)
            answers = pipe.execute()
        return {job_id: frozenset(raw.decode() for raw in nodes) for job_id, nodes in zip(others, answers, strict=True)}

    def assign(self, nodes: list[str]) -> None:
        """Let only these nodes work for the job; every node, when there are none."""
        if not self._assign(keys=[self._keys.job, self._keys.nodes], args=[self.term, *nodes]):
            raise Fenced(f"term {self.term} may not assign nodes")

    def count_setback(self, kind: str, *, mark: int = 0) -> int:
        """Count one more setback of this kind; returns how many there were in a row.

        Args:
            mark: how much is durable. When it is more than at the last setback, of any kind, all counts begin again.
        """
        key = self._keys.setbacks
        if mark > int(self._redis.hget(key, "mark") or 0):
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(key)
                pipe.hset(key, "mark", mark)
                pipe.execute()
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hincrby(key, kind, 1)
            pipe.hsetnx(key, f"{kind}:since", repr(self._now()))
            return int(pipe.execute()[0])

    def set_back_for_s(self, kind: str) -> float:
        """Return how long ago the first of the present row of such setbacks was counted."""
        since = self._redis.hget(self._keys.setbacks, f"{kind}:since")
        return max(0.0, self._now() - float(since)) if since else 0.0

    def _now(self) -> float:
        seconds, micros = self._redis.time()
        return float(seconds) + float(micros) / 1e6

    def is_concatenating(self) -> bool:
        """Return whether a process that puts the output together is alive, or was a few seconds ago."""
        return is_concatenating(self._redis, self.job_id)

    def shown_steps(self) -> dict[str, str]:
        """The states of a pipeline's steps, as shown last; without those that have not been shown."""
        raw = self._redis.hget(self._keys.job, "steps")
        return msgspec.json.decode(raw, type=dict[str, str]) if raw else {}

    def show_steps(self, states: dict[str, str]) -> None:
        """Show how a pipeline's steps stand, and announce how many stand how."""
        counts = {"total": len(states), **Counter(states.values())}
        self.show({"steps": msgspec.json.encode(states)}, event=("steps", msgspec.json.encode(counts)))

    def show(self, fields: dict[str, str | bytes | int], *, event: tuple[str, bytes] | None = None) -> None:
        """Write what others may read of the job, and announce an event (see `announce`) in the same round trip."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(self._keys.job, mapping=fields)  # type: ignore[arg-type]
            if event is not None:
                self._add_event(pipe, *event)
            pipe.execute()

    def announce(self, event: str, data: bytes) -> None:
        """Notify those who watch the job; `data`: JSON."""
        with self._redis.pipeline(transaction=False) as pipe:
            self._add_event(pipe, event, data)
            pipe.execute()

    def _add_event(self, pipe: Pipeline, event: str, data: bytes) -> None:
        pipe.hincrby(self._keys.job, "version", 1)
        pipe.xadd(self._keys.events, {"event": event, "data": data}, maxlen=10_000, approximate=True)


def _given_up(mini_batch: bytes, raw: bytes, tries: bytes, generation: int) -> Outcome:
    return Outcome(
        mini_batch=int(mini_batch),
        generation=generation,
        status="failed",
        token="",
        tries=int(tries),
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
