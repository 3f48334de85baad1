"""Placing: the nodes of a job that asks for a number of them, and what keeps its workers from them. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple
from zlib import crc32


class Obstacle(StrEnum):
    """Why a node that is alive runs nothing of a job, for reasons that are not the job's; the value is for people."""

    SLOTS = "other jobs hold all slots"
    DISK = "disks are full"
    PREPARATION = "its environment or its inputs are being brought there"


class NodePlace(NamedTuple):
    """A node that takes work."""

    node: str
    free: int
    """Workers that the job could begin there now."""
    is_used: bool
    """True if the job has workers there, or what these need is being made there."""
    fits: bool = True
    """True if it has the GPUs that the job's workers share, if they do."""


def chosen(job_id: str, ready: Sequence[NodePlace], earlier: Collection[str], count: int) -> list[str]:
    """The names of that many nodes, or of all that there are.

    A job stays where it is. But where it has not begun, and others have taken all slots, it goes to a node with room
    if there is one. A node that is new to it is the one with the most room. Among equal nodes each job has an order of
    its own, so that many small jobs don't all meet on one.
    """

    def rank(place: NodePlace) -> tuple[bool, bool, bool, bool, int, int]:
        order = crc32(f"{job_id}/{place.node}".encode())
        return not place.is_used, not place.fits, place.free <= 0, place.node not in earlier, -place.free, order

    return [place.node for place in sorted(ready, key=rank)[:count]]


def all_obstacles(nodes: Iterable[Obstacle | None]) -> tuple[Obstacle, ...]:
    """The obstacles on the nodes of a job, each once; none if some node has none."""
    of_each = list(nodes)
    return () if None in of_each else tuple(dict.fromkeys(each for each in of_each if each))
