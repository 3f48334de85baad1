"""Which nodes a job gets that asks for a number of them. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from zlib import crc32


class Place(NamedTuple):
    """A node that takes work."""

    node: str
    has_room: bool
    """Whether a slot of it is free."""
    is_used: bool
    """Whether the job has workers there, or what these need is being made there."""


def chosen(job_id: str, ready: Sequence[Place], earlier: Collection[str], count: int) -> list[str]:
    """The names of that many nodes, or of all that there are.

    A job stays where it is. But where it has not begun, and others have taken all slots, it goes to a node with room
    if there is one. Among equal nodes each job has an order of its own, so that many small jobs don't all meet on one.
    """

    def rank(place: Place) -> tuple[bool, bool, bool, int]:
        order = crc32(f"{job_id}/{place.node}".encode())
        return not place.is_used, not place.has_room, place.node not in earlier, order

    return [place.node for place in sorted(ready, key=rank)[:count]]
