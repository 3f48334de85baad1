"""The nodes that Redis knows of, and which of them are alive."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Final, NamedTuple

import msgspec
from redis import Redis

from parallelrun_core.answers.nodes import NodeCheck, NodeGpu, NodePressure
from parallelrun_core.errors import NotFound, Unavailable
from parallelrun_core.figures import counted
from parallelrun_core.store import keys
from parallelrun_core.store.scripts import script
from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.states import NodeState

_ASKED_S: Final = 60
"""How long a request to check stands."""
MOST_PATHS: Final = 32
_STACKS_S: Final = 30
"""How long a request for stacks stands: agents with long leases speak seldom."""
_MOST_STACKS: Final = 64
_SAME_CLOCK_S: Final = 2.0
"""Clocks that differ by less are taken for the same: heartbeats are late by chance, too."""


class NodeCheckRequest(msgspec.Struct, kw_only=True, frozen=True):
    """All nodes shall check themselves."""

    id: str
    paths: list[str] = []
    """The paths that jobs are to read there, too; at most `MOST_PATHS`."""


class StacksRequest(msgspec.Struct, kw_only=True, frozen=True):
    """The nodes that work for a job shall show where its workers are."""

    id: str
    job_id: str
    node: str = ""
    """Only this one; empty: all of them."""
    process: str = ""
    """Only this worker; empty: all of them."""
    until_ms: int = 0
    """The end of its validity, by the clock of Redis."""


class NodeMeasurement(msgspec.Struct, kw_only=True, frozen=True):
    """The use of the resources of a node, as its agent has measured it last."""

    at: float
    """Seconds since the epoch, by the clock of the node."""
    cpus: float
    """CPUs that are there; of a node with a limit, the limit."""
    cpu: float
    """The share of all CPUs that was busy since the measurement before, 0 to 1."""
    memory_used_bytes: int
    disk_read_bytes_per_s: float | None = None
    disk_written_bytes_per_s: float | None = None
    network_received_bytes_per_s: float
    network_sent_bytes_per_s: float
    history_s: float
    """Seconds between two values of the history."""
    cpu_history: list[int]
    """Percent of all CPUs, the latest last."""
    memory_history: list[int]
    """Percent of the memory, at the same times."""


class NodeRequests(NamedTuple):
    """The requests to a node, which stand until it has answered."""

    check: NodeCheckRequest | None
    leave: bool
    """Finish what runs, return the rest, and end."""
    stacks: list[StacksRequest]
    """Show these, once."""


class NodeInfo(msgspec.Struct, kw_only=True, frozen=True):
    """An agent's description of its node."""

    node: str
    session: str
    host: str
    pid: int
    slots: int
    busy: int
    state: NodeState
    version: str
    started: float
    jobs: list[str] = []
    workers: dict[str, int] = {}
    """Busy slots per job."""
    owners: dict[str, int] = {}
    """Workers for jobs of each owner, of those for whose jobs it works."""
    work: dict[str, NodeWork] = {}
    """Work for each job; empty: an earlier release."""
    in_hand: int | None = None
    """Workers that have something to do or get ready for it, and jobs that the node prepares for; unknown: an earlier
    release."""
    lease_ms: int = 0
    """Milliseconds that it counts as alive after a heartbeat."""
    workers_apart: bool = False
    """True if user code runs as another user than the agent."""
    memory_bytes: int = 0
    disk_free_bytes: int = 0
    """Free where its workers have their working folders."""
    sent: float = 0.0
    """Time when it said this, by its own clock."""
    pressure: NodePressure | None = None
    """Unknown if its kernel doesn't measure it, or an earlier release doesn't."""
    gpus: list[NodeGpu] = []
    """The GPUs that workers get; none if nothing there can measure them."""
    most_slots: int = 0
    """Workers that a job may have there which asks for more than `slots`; 0: no more."""
    gpu_count: int = 0
    """Number of GPUs that workers get, measured or not; 0 of an earlier release."""
    check: NodeCheck | None = None
    """The answer to the last request, for a while."""
    usage: NodeMeasurement | None = None
    """The use of its resources; None: an agent of an earlier release doesn't measure it."""
    compute: str = ""
    """The compute that it belongs to; empty: none."""
    image: str = ""
    """The image that it is of, as its jobs name it; empty: they name none."""
    ends_at: float = 0.0
    """Time when its engine is going to end it, in seconds since the epoch; 0: not by itself."""
    clock_ahead_s: float = 0.0
    """Seconds that its clock is ahead of Redis', as the reader of the list finds out."""

    def workers_of(self, requested: int | None, gpus: Fraction | None = None) -> int:
        """The number of workers that a job may have there (reference §1.1).

        Args:
            requested: its `max_concurrency_per_instance`.
            gpus: that each of its workers has, or the part of one; None: it doesn't say.
        """
        by_default = (int(self.gpu_count / gpus) if gpus else 1) or 1 if self.gpu_count else self.slots
        return min(max(self.slots, self.most_slots if requested else 0), requested or by_default)

    def work_for(self, job_id: str) -> NodeWork | None:
        """Return its work for a job, with times by the clock of Redis; None: it does nothing for it."""
        work = self.work.get(job_id)
        if work is None or abs(self.clock_ahead_s) < _SAME_CLOCK_S:
            return work
        ahead_s = self.clock_ahead_s
        return msgspec.structs.replace(
            work,
            init_since=work.init_since and work.init_since - ahead_s,
            longest_since=work.longest_since and work.longest_since - ahead_s,
        )


def fewer_workers(requested: int, nodes: Iterable[NodeInfo]) -> str:
    """The words for a job that asks for more workers than nodes have slots; empty: all of them have enough.

    Args:
        requested: its `max_concurrency_per_instance`.
    """
    most = {info.workers_of(requested): info.compute for info in nodes}
    if not most or min(most) >= requested:
        return ""
    slots = counted(min(most), "slot") if len(most) == 1 else f"{min(most):,} to {max(most):,} slots"
    compute = most[min(most)]
    more = f"`slots` of compute {compute!r}" if compute else "--processes N of `parallelrun up`"
    return (
        f"max_concurrency_per_instance asks for {counted(requested, 'worker')} on each node, and nodes have {slots}, "
        f"so no more run there at a time (more: {more}; for nodes that people start, parallelrun-agent --slots N, "
        f"or --most-slots {requested} for jobs that ask for it)"
    )


class NodeRegistry:
    """All nodes. Raises redis-py's errors when the server is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._beat = script(redis, "beat")
        self._keys = [keys.NODES, keys.NODES_ALIVE, keys.NODES_CHECK, keys.NODES_DRAINING, keys.NODES_STACKS]

    def beat(self, info: NodeInfo, *, lease_ms: int) -> NodeRequests:
        """Record that a node is alive; returns what it is asked to do."""
        described = msgspec.json.encode(msgspec.structs.replace(info, lease_ms=lease_ms))
        check, leave, *stacks = self._beat(keys=self._keys, args=[info.node, described, lease_ms, info.session])
        return NodeRequests(
            msgspec.json.decode(check, type=NodeCheckRequest) if check else None,
            bool(leave),
            [msgspec.json.decode(each, type=StacksRequest) for each in stacks],
        )

    def remove(self, node: str, session: str = "") -> None:
        """Take a node off the list, and forget that the session of its agent was drained: it has shut down in order."""
        self._beat(keys=self._keys, args=[node, "", 0, session])

    def ask_to_check(self, paths: list[str]) -> str:
        """Let every node check itself, with what can be read there of these paths; returns the request's id."""
        request = NodeCheckRequest(id=secrets.token_hex(8), paths=paths[:MOST_PATHS])
        self._redis.set(keys.NODES_CHECK, msgspec.json.encode(request), ex=_ASKED_S)
        return request.id

    def ask_for_stacks(self, job_id: str, *, node: str = "", process: str = "") -> str:
        """Let the nodes that work for a job show where its workers are; returns the request's id.

        Raises:
            Unavailable: too many such requests stand already.
        """
        if self._redis.hlen(keys.NODES_STACKS) >= _MOST_STACKS:
            raise Unavailable(f"The stacks of {_MOST_STACKS} jobs are being asked for. Try again in half a minute.")
        seconds, _ = self._redis.time()
        request = StacksRequest(
            id=secrets.token_hex(8), job_id=job_id, node=node, process=process, until_ms=(seconds + _STACKS_S) * 1000
        )
        self._redis.hset(keys.NODES_STACKS, job_id, msgspec.json.encode(request))
        self._redis.expire(keys.NODES_STACKS, 2 * _STACKS_S)
        return request.id

    def ask_to_leave(self, nodes: Collection[str]) -> None:
        """Let these nodes finish what they run, return the rest, and end; it stands until `asked_no_more`."""
        if nodes:
            self._redis.sadd(keys.NODES_DRAINING, *nodes)

    def drain(self, node: str) -> NodeInfo:
        """Let a node finish what it runs, return the rest, and end. One started under its name later works.

        Raises:
            NotFound: no node of this name is alive.
        """
        info = next((info for info, is_alive in self.all() if info.node == node and is_alive), None)
        if info is None:
            raise NotFound(f"There is no node {node!r} that is alive.")
        # A node of a compute is asked by its name, as its provisioner asks, so that its end counts as no failure.
        self.ask_to_leave([info.node if info.compute else info.session])
        return info

    def asked_to_leave(self) -> set[str]:
        """The nodes of which that stands, whether they are there or not."""
        return {raw.decode() for raw in self._redis.smembers(keys.NODES_DRAINING)}  # type: ignore[union-attr]

    def asked_no_more(self, nodes: Collection[str]) -> None:
        """Forget that these were asked to leave: they are gone."""
        if nodes:
            self._redis.srem(keys.NODES_DRAINING, *nodes)

    def all(self) -> list[tuple[NodeInfo, bool]]:
        """All known nodes, by name, and whether each is alive."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hgetall(keys.NODES)
            pipe.zrange(keys.NODES_ALIVE, 0, -1, withscores=True)
            (seconds, micros), described, expiries = pipe.execute()
        now_ms = seconds * 1000 + micros // 1000
        alive = {raw: expires for raw, expires in expiries if expires > now_ms}
        return [(_decoded(text, alive.get(raw, 0)), raw in alive) for raw, text in sorted(described.items())]


def _decoded(text: bytes, expires_ms: float) -> NodeInfo:
    """A description, with what its time says about the node's clock."""
    info = msgspec.json.decode(text, type=NodeInfo)
    if not (info.sent and expires_ms):
        return info
    heard_s = (expires_ms - info.lease_ms) / 1000  # by the clock of Redis
    return msgspec.structs.replace(info, clock_ahead_s=round(info.sent - heard_s, 3))
