"""The jobs that Redis knows of, and their moves from state to state."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from redis import Redis

from parallelrun_core.errors import Conflict, Fenced, NotFound
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.store import keys
from parallelrun_core.store.fast_path import Command, conversation, in_one_step
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.scripts import QuickScript, script
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import ALLOWED_FROM, NO_ORDERS, JobState, Orders

_REMEMBER_S = 7 * 86_400  # after that, the job is read from its folder
_STATUSES: Final = 4_000
"""Jobs of which the status is remembered as it was read last."""
_LOOKED_AT: Final = 32
"""Of jobs that still wait for a leader, so many are looked at each time: the oldest, as leaders take them in order."""
_ALL_EVERY: Final = 10
"""All of them are looked at each time of so many."""
FOR_OTHERS: Final = -1
BETWEEN_OUTPUTS: Final = b"\0"
"""What no path has."""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The state and the progress of a job on Redis."""

    job_id: str
    state: JobState
    version: int
    """Grows with every change that a watcher may want to see."""
    term: int
    progress: Progress
    failure: JobFailure | None
    started: float | None
    ended: float | None
    generation: int
    """The one of which this is the state, as far as Redis knows: a later one may have begun that it has lost."""
    is_paused: bool = False
    priority: str = ""
    """The priority that somebody has given it since; empty: the submitted one."""


_STATES: Final[Mapping[bytes, JobState]] = {state.encode(): state for state in JobState}
"""The states by what Redis has; a node looks up that of each active job, several times a second."""


class ActiveJob(NamedTuple):
    """A job that may need nodes, as one that looks for work sees it."""

    job_id: str
    state: JobState | None
    """None: Redis has lost it."""
    ready: int
    """Mini-batches that wait to be leased by this node; `FOR_OTHERS`: other nodes have been chosen for the job, or
    somebody has paused it."""
    sessions: int
    """Nodes that work for it."""


class Registry:
    """All jobs. Raises redis-py's errors when the server is away.

    Args:
        node: the one that looks for work with `peek()`.
    """

    def __init__(self, redis: Redis, *, node: str = "") -> None:
        self._redis = redis
        self._node = node
        self._transition = script(redis, "transition")
        self._reopen = script(redis, "reopen")
        self._retire = script(redis, "retire")
        self._statuses = script(redis, "statuses")
        self._read = LruCache[tuple[list[bytes], JobStatus]](_STATUSES)
        self._peeks = 0
        self._waiting: set[str] = set()
        """Active jobs that waited for a leader at the last look."""
        self._expect([], of_all=True)

    def add_job(
        self,
        job_id: str,
        *,
        submitted: float,
        output: str | None = None,
        generation: int = 0,
        orders: Orders = NO_ORDERS,
        also: Iterable[Command] = (),
    ) -> None:
        """Make a job known, once it has its folder. A second call only repeats the orders.

        Args:
            generation: the one that it is in.
            orders: those of people about it.
            output: the file or object that it will publish, when other jobs may name the same; of a pipeline, all of
                them, with `BETWEEN_OUTPUTS` between them.
            also: commands of more that is to happen in the same step.
        """
        job = JobKeys(job_id).job
        fields = {"output": os.fsencode(output) if output is not None else "", "reopened": generation}
        commands: list[Command] = [*also, ("HSETNX", job, "state", JobState.QUEUED.value)]
        commands += [("HSET", job, name, value) for name, value in fields.items() if value]
        commands += [*_telling(job, orders), ("ZADD", keys.ACTIVE_JOBS, submitted, job_id)]
        in_one_step(self._redis, commands)

    def order(self, job_id: str, orders: Orders) -> None:
        """Tell Redis whether a job is paused, and its priority; those who watch it see a new version."""
        job = JobKeys(job_id).job
        in_one_step(self._redis, [*_telling(job, orders), ("HINCRBY", job, "version", 1)])

    def orders(self, job_id: str) -> Orders:
        """Return the orders about a job, as Redis has them."""
        paused, priority = self._redis.hmget(JobKeys(job_id).job, "paused", "priority")
        return Orders(bool(paused), _text(priority))

    def priorities(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return the priority that each of these jobs was given since it was submitted; empty: none."""
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(JobKeys(job_id).job, "priority")
            return {job_id: _text(raw) for job_id, raw in zip(job_ids, pipe.execute(), strict=True)}

    def active_jobs(self) -> list[str]:
        """Jobs that may need a leader or agents, oldest first."""
        return [raw.decode() for raw in self._redis.zrange(keys.ACTIVE_JOBS, 0, -1)]  # type: ignore[union-attr]

    def writers_of(self, outputs: Collection[str], *, other_than: Collection[str]) -> dict[str, str]:
        """Return those of these files that a job which has not ended will publish, with that job; not one of
        `other_than`."""
        active = self.active_jobs() if outputs else []
        by_raw_output = {os.fsencode(output): output for output in outputs}
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in active:
                pipe.hmget(JobKeys(job_id).job, "output", "state")
            answers = zip(active, pipe.execute(), strict=True)
        writers: dict[str, str] = {}
        for job_id, (claim, state) in answers:
            if claim and state and job_id not in other_than and not JobState(state.decode()).is_terminal:
                same = by_raw_output.keys() & claim.split(BETWEEN_OUTPUTS)
                writers |= {by_raw_output[each]: job_id for each in same if by_raw_output[each] not in writers}
        return writers

    def claim_recovery(self) -> tuple[bool, str, list[str]]:
        """Return whether the caller is to make all jobs known again, because Redis is new, or was wiped since the last
        claim; with the id that Redis has drawn at its start, and with what `active_jobs` returns.

        In one round trip, as each master asks for all of this each second.
        """
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.info("server")
            pipe.set(keys.KNOWN, 1, nx=True)
            pipe.zrange(keys.ACTIVE_JOBS, 0, -1)
            server, is_claimed, active = pipe.execute()
        return bool(is_claimed), str(server["run_id"]), [raw.decode() for raw in active]

    def is_active(self, job_id: str) -> bool:
        """Return whether the job may need a leader or agents; one that has ended may until it is retired."""
        return self._redis.zscore(keys.ACTIVE_JOBS, job_id) is not None

    def peek(self) -> list[ActiveJob]:
        """The active jobs, oldest first. Of many that wait for a leader, most are passed over most times: they count as
        still waiting."""
        self._peeks += 1
        of_all = self._peeks % _ALL_EVERY == 0
        if of_all != self._is_of_all and (of_all or len(self._waiting) > _LOOKED_AT):
            self._expect(self._expected, of_all=of_all)
        # In one round trip, except after a change of the list: a thousand nodes do this several times a second.
        active, *answers = self._peek([])
        while active != self._expected:
            self._expect(active, of_all=of_all)
            active, *answers = self._peek([])
        peeked = {
            job_id: ActiveJob(job_id, _STATES.get(state), ready, sessions)
            for job_id, state, ready, sessions in zip(
                self._looked_at, answers[::3], answers[1::3], answers[2::3], strict=True
            )
        }
        jobs = [peeked.get(job_id) or ActiveJob(job_id, JobState.QUEUED, 0, 0) for job_id in self._expected_ids]
        self._waiting = {job.job_id for job in jobs if job.state is JobState.QUEUED}
        return jobs

    def is_first_to_join(self, job_id: str) -> bool:
        """Ask for a job that one node is enough for; returns whether this node may join it now.

        It may if no other has asked since the job began, or since its last node left or was lost.
        """
        job = JobKeys(job_id).job
        with self._redis.pipeline(transaction=False) as pipeline:  # nodes may not use MULTI
            pipeline.hincrby(job, "joining", 1)
            pipeline.hexists(job, "state")
            requests, is_known = pipeline.execute()
        if not is_known:
            self._redis.hdel(job, "joining")  # else a job that is gone would come back as this field alone
        return bool(is_known and requests == 1)

    def _expect(self, active: list[bytes], *, of_all: bool) -> None:
        """Look at these jobs from now on, or at some of them."""
        self._expected = active
        self._expected_ids = [job_id.decode() for job_id in active]
        queued = [job_id for job_id in self._expected_ids if job_id in self._waiting]
        passed_over = frozenset[str]() if of_all else frozenset(queued[_LOOKED_AT:])
        self._is_of_all = not passed_over
        self._looked_at = [job_id for job_id in self._expected_ids if job_id not in passed_over]
        jobs = [JobKeys(job_id) for job_id in self._looked_at]
        named = [keys.ACTIVE_JOBS, *(key for job in jobs for key in (job.job, job.ready, job.sessions, job.nodes))]
        self._peek = QuickScript(self._redis, script(self._redis, "peek"), named, [self._node])

    def retire(self, job_id: str, *, term: int) -> None:
        """Take a job whose end is recorded off the list of active ones, and free what only running needs.

        Raises:
            Fenced: the term is over, and the job may have been reopened.
        """
        job = JobKeys(job_id)
        freed = [
            job.ready, job.messages, job.leases, job.twins, job.tries, job.lost, job.sessions, job.nodes, job.outcomes,
            job.setbacks, job.given_up, job.delayed,
        ]  # fmt: skip
        if not self._retire(keys=[job.job, keys.ACTIVE_JOBS, job.events, *freed], args=[term, job_id, _REMEMBER_S]):
            raise Fenced(f"term {term} may not retire the job")

    def forget(self, job_id: str) -> None:
        """Remove every trace of a job that nobody works for any more."""
        self._redis.delete(*JobKeys(job_id).all())
        self._redis.zrem(keys.ACTIVE_JOBS, job_id)

    def status(self, job_id: str) -> JobStatus:
        """Return what Redis knows about a job.

        Raises:
            NotFound: nothing.
        """
        status = _status_of(job_id, self._redis.hgetall(JobKeys(job_id).job))
        if status is None:
            raise NotFound(f"There is no job {job_id!r}.")
        return status

    def statuses(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        """Return what Redis knows about these jobs, in one round trip; without those that it doesn't know.

        Of a job that has not changed since, it is the same object as the last time.
        """
        if not job_ids:
            return {}
        answers = self._statuses(keys=[JobKeys(job_id).job for job_id in job_ids])
        each = (self._status(job_id, answer) for job_id, answer in zip(job_ids, answers, strict=True))
        return {status.job_id: status for status in each if status is not None}

    def _status(self, job_id: str, answer: list[bytes]) -> JobStatus | None:
        cached = self._read.get(job_id)
        if cached is not None and cached[0] == answer:
            return cached[1]
        status = _status_of(job_id, dict(zip(answer[::2], answer[1::2], strict=True)))
        if status is not None:
            self._read.put(job_id, (answer, status))
        return status

    def state(self, job_id: str) -> JobState | None:
        """A job's state, or None when Redis doesn't know the job."""
        raw: Any = self._redis.hget(JobKeys(job_id).job, "state")
        return JobState(raw.decode()) if raw else None

    def states(self, job_ids: Sequence[str]) -> list[JobState | None]:
        """The states of several jobs, in one round trip."""
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(JobKeys(job_id).job, "state")
            return [JobState(raw.decode()) if raw else None for raw in pipe.execute()]

    def move(self, job_id: str, to: JobState, failure: JobFailure | None = None, *, term: int | None = None) -> None:
        """Move a job to another state.

        Args:
            term: that of the leader that calls; None for any other caller.

        Raises:
            NotFound: there is no such job.
            Conflict: it can't be entered from the current state.
            Fenced: the term is over.
        """
        job = JobKeys(job_id)
        text = msgspec.json.encode(failure) if failure else b""
        done, present = self._transition(
            keys=[job.job, job.outcomes, job.events],
            args=["" if term is None else term, to, text, *sorted(ALLOWED_FROM[to])],
        )
        if done < 0:
            raise Fenced(f"term {term} may not move the job on")
        if not present:
            raise NotFound(f"There is no job {job_id!r}.")
        if not done:
            raise Conflict(f"Job {job_id} is {present.decode()}: it can't become {to}.")

    def reopen(
        self,
        job_id: str,
        *,
        submitted: float,
        generation: int,
        output: str | None = None,
        orders: Orders = NO_ORDERS,
    ) -> None:
        """Queue a job again that has ended, or of which Redis knows nothing any more. Whoever led it does so no more.

        Args:
            generation, output, orders: as for `add_job`.

        Raises:
            Conflict: it has not ended.
        """
        job = JobKeys(job_id)
        done, present = self._reopen(keys=[job.job, job.events, job.leader, job.setbacks], args=[generation])
        if not done:
            raise Conflict(f"Job {job_id} is {present.decode()}: only a job that has ended can be reopened.")
        self.add_job(job_id, submitted=submitted, output=output, orders=orders)

    def has_leader(self, job_id: str, *, longest_ms: int = sys.maxsize) -> bool:
        """Return whether a process leads the job. Leadership that would last longer than `longest_ms` doesn't count."""
        lasts_ms: Any = self._redis.pttl(JobKeys(job_id).leader)
        return bool(0 <= lasts_ms <= longest_ms)

    def without_leader(self, job_ids: Sequence[str], *, longest_ms: int = sys.maxsize) -> list[str]:
        """Return those of these jobs that `has_leader` denies, in one round trip."""
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.pttl(JobKeys(job_id).leader)
            answers = pipe.execute()
        return [job_id for job_id, lasts_ms in zip(job_ids, answers, strict=True) if not 0 <= lasts_ms <= longest_ms]

    def now(self) -> float:
        """Redis' clock, in seconds since the epoch."""
        with conversation(self._redis) as ask:
            ((seconds, micros),) = ask(("TIME",))
        return float(seconds) + float(micros) / 1e6

    def ping(self) -> float:
        """The time of a round trip, in seconds."""
        began = time.perf_counter()
        self._redis.ping()
        return time.perf_counter() - began


def _telling(job: str, orders: Orders) -> Iterator[Command]:
    """Yield the commands that put orders into the hash of a job; an order that isn't there is no field, and costs
    nothing."""
    fields = {"paused": "1" if orders.is_paused else "", "priority": orders.priority}
    for name, value in fields.items():
        if value:
            yield "HSET", job, name, value
    if left_out := [name for name, value in fields.items() if not value]:
        yield "HDEL", job, *left_out


def _text(raw: Any) -> str:
    return raw.decode() if raw else ""


def _status_of(job_id: str, fields: Any) -> JobStatus | None:
    if b"state" not in fields:
        return None
    return JobStatus(
        job_id=job_id,
        state=JobState(fields[b"state"].decode()),
        version=int(fields.get(b"version", 0)),
        term=int(fields.get(b"term", 0)),
        progress=msgspec.json.decode(fields.get(b"progress", b"{}"), type=Progress),
        failure=msgspec.json.decode(fields[b"failure"], type=JobFailure) if b"failure" in fields else None,
        started=float(fields[b"started"]) if b"started" in fields else None,
        ended=float(fields[b"ended"]) if b"ended" in fields else None,
        generation=max(int(fields.get(b"reopened", 0)), int(fields.get(b"generation", 0))),
        is_paused=b"paused" in fields,
        priority=fields.get(b"priority", b"").decode(),
    )
