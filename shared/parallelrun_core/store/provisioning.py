"""The state of provisioners on Redis: who of them acts, the nodes that were asked for, and how each compute stands.

Nothing of it is needed: without it, nodes are found again by what their engines say, and the rest is decided anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_core.store import keys
from parallelrun_core.wire.leasing import LEADER_S

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline


class LaunchRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A node that was asked for; written before its engine is asked, so that none is nobody's."""

    compute: str
    at: float
    """Time of the launch, by Redis' clock."""
    kind: str = ""
    """The kind of the compute; empty: an earlier release recorded it. A compute may be defined anew with another kind.
    """
    image: str = ""
    """The image of the node's shape."""
    has_come: bool = False
    """True if its agent was ever there."""
    came_at: float = 0.0
    """Time when it was first seen."""
    is_judged: bool = False
    """True if it is known if this launch was a success, and has been counted."""


class Pause(msgspec.Struct, kw_only=True, frozen=True):
    """Launches of one shape of node have failed."""

    failures: int
    """Number of failures in a row."""
    failed_at: float
    why: str
    """The Engine's message about the last failure."""
    next_attempt: float
    """Time when the next one is made."""


class ImageBuild(msgspec.Struct, kw_only=True, frozen=True):
    """An image that jobs wait for, because it is built for them."""

    said: str = ""
    """The step that is being done."""
    failure: str = ""
    """Why there will be none; empty: it may still come."""
    failed_at: float = 0.0
    """Since when, by Redis' clock; 0: as of the status."""


class NodeStatus(msgspec.Struct, kw_only=True, frozen=True):
    """A node of a compute, as its provisioner sees it."""

    node: str
    stage: str
    """asked, pending, starting, ready, leaving, left, lost or ended."""
    since: float
    words: str = ""
    """The engine's own, on why it waits or has ended."""


class ProvisioningStatus(msgspec.Struct, kw_only=True, frozen=True):
    """The status of a compute, by the provisioner that acts."""

    at: float
    """Time when it said so, by Redis' clock."""
    wanted: int = 0
    """Nodes that its jobs can keep busy, within its limits."""
    ready: int = 0
    launching: int = 0
    """Asked for, and not there yet."""
    leaving: int = 0
    nodes: list[NodeStatus] = []
    """The first of them."""
    failures: int = 0
    """Launches that have failed in a row, of the shape of node that failed last."""
    why: str = ""
    """The engine's message about the last failure, or why it can't be asked."""
    next_attempt: float = 0.0
    """Time when it is asked again; 0: at once."""
    trouble: str = ""
    """Why the engine can't be asked at all."""
    pauses: dict[str, Pause] = {}
    """By the image of their nodes: one that can't be had doesn't hold up others."""
    builds: dict[str, ImageBuild] = {}
    """By what nodes call it: what is built for jobs, and isn't there. The first of them, those that failed before those
    being built, and others last."""
    more_builds: int = 0
    """Images besides."""
    slots: int = 0
    """Slots of a node, as last seen; 0: unknown."""
    plan: str = ""
    """Exactly what is sent to the engine for a node."""
    plans: dict[str, str] = {}
    """The plans for nodes of images that jobs have named, by the image: of jobs that need nodes, and of nodes there."""
    revision: str = ""
    """The version of the compute's definition that this is about."""


class Provisioning:
    """Raises redis-py's errors when the server is away. `token` is that of this provisioner's life.

    Args:
        lease_ms: how long a silent provisioner keeps others out.
    """

    def __init__(self, redis: Redis, *, lease_ms: int = round(LEADER_S * 1000)) -> None:
        self._redis = redis
        self._lease_ms = lease_ms
        self.token: Final = secrets.token_hex(8)

    def lead(self) -> bool:
        """Be the one that acts, or stay it; whether this is so for `lease_ms` from now."""
        key, mine = keys.PROVISIONER, self.token.encode()
        if self._redis.set(key, mine, px=self._lease_ms, nx=True):
            return True
        return self.stays()

    def stays(self) -> bool:
        """Stay the one that acts, if nobody else has been since; asked before each act, as what was seen may be old."""
        return self._as_leader(lambda _: None)

    def resign(self) -> None:
        """Let another one act at once."""
        self._as_leader(lambda pipe: pipe.delete(keys.PROVISIONER))

    def serve(self, kinds: Sequence[str]) -> None:
        """Say of which kinds this one has nodes, unless another one acts by now."""
        self._as_leader(lambda pipe: pipe.set(keys.KINDS, " ".join(kinds)))

    def kinds(self) -> list[str]:
        """The kinds of which the last provisioner that acted has nodes, the main one first; empty: none has said."""
        text: bytes | None = self._redis.get(keys.KINDS)  # type: ignore[assignment]
        return text.decode().split() if text else []

    def record(self, launch_id: str, launch: LaunchRecord) -> bool:
        """Record a launch, unless another provisioner acts by now; whether it is recorded."""
        text = msgspec.json.encode(launch)
        return self._as_leader(lambda pipe: pipe.hset(keys.LAUNCHES, launch_id, text))

    def launches(self) -> dict[str, LaunchRecord]:
        """All that are recorded, by their ids."""
        raw: Mapping[bytes, bytes] = self._redis.hgetall(keys.LAUNCHES)  # type: ignore[assignment]
        return {name.decode(): msgspec.json.decode(text, type=LaunchRecord) for name, text in raw.items()}

    def forget(self, launch_ids: Collection[str]) -> None:
        """Nothing is left of these."""
        if launch_ids:
            self._redis.hdel(keys.LAUNCHES, *launch_ids)

    def publish(self, compute: str, status: ProvisioningStatus) -> None:
        """Show how a compute stands."""
        self._redis.hset(keys.COMPUTES, compute, msgspec.json.encode(status))

    def hide(self, computes: Collection[str]) -> None:
        """These are no more."""
        if computes:
            self._redis.hdel(keys.COMPUTES, *computes)

    def statuses(self) -> dict[str, ProvisioningStatus]:
        """Return how each compute stands of which a provisioner has said something."""
        raw: Mapping[bytes, bytes] = self._redis.hgetall(keys.COMPUTES)  # type: ignore[assignment]
        return {name.decode(): msgspec.json.decode(text, type=ProvisioningStatus) for name, text in raw.items()}

    def status(self, compute: str) -> ProvisioningStatus | None:
        """Return how one stands; None: no provisioner has said anything of it."""
        text: bytes | None = self._redis.hget(keys.COMPUTES, compute)  # type: ignore[assignment]
        return msgspec.json.decode(text, type=ProvisioningStatus) if text else None

    def _as_leader(self, change: Callable[[Pipeline], object]) -> bool:
        """Make a change that takes place only if this provisioner is the one that acts; it stays that."""
        from redis import WatchError

        with self._redis.pipeline(transaction=True) as pipe:
            pipe.watch(keys.PROVISIONER)  # type: ignore[no-untyped-call]
            if pipe.get(keys.PROVISIONER) != self.token.encode():
                return False
            pipe.multi()
            pipe.pexpire(keys.PROVISIONER, self._lease_ms)
            change(pipe)
            try:
                pipe.execute()
            except WatchError:
                return False
        return True
