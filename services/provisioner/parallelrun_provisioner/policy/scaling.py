"""Scaling: the nodes that a compute asks for, and those that go. It knows no clock and no engine, and keeps nothing
between two calls.

A node is never ended while it has work: first it is asked to leave, which only an idle one is, and once it has left,
its object is removed. What is wanted and what is there are compared anew each time, so whoever decides may die at any
moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from parallelrun_core.computes.launch import Shape

MISSING_S: Final = 30.0
"""How long after it was asked for a node may be unknown to its engine, whose answers lag."""
START_S: Final = 600.0
"""How long after it runs a node may take to come: it fetches an image, a machine starts."""
LOST_S: Final = 30.0
"""How long a node that is silent may still come back."""
LEFT_S: Final = 15.0
"""How long the object of a node that has left may take to end by itself."""
REPLACE_S: Final = 60.0
"""How long before its engine ends a node another one is asked for."""
MOST_STARTING: Final = 100
"""Nodes that are on their way at the same time, so that a mistake costs a hundred launches and not a thousand."""
LONGEST_S: Final = 10.0
"""An answer of an engine must not be older than the time for which a node may be unknown to it (`MISSING_S`)."""
_OF_QUIET: Final = 0.1
"""A node that has been waiting for an hour will hardly start in this very second."""
_OF_COST: Final = 20.0
"""Engines are others', too: at most this part of the time, one is busy with a question of ours."""


class NodePhase(StrEnum):
    """The phase of a node's life, by what engine and Redis say."""

    ASKED = "asked"
    """The node was asked for, and its engine doesn't list it (yet, or any more)."""
    PENDING = "pending"
    """Its engine has accepted it."""
    STARTING = "starting"
    """Its object runs, and its agent has not come yet."""
    READY = "ready"
    LEAVING = "leaving"
    """The node was asked to leave, or does so by itself."""
    LEFT = "left"
    """Its agent has ended in order; its object may be there still."""
    LOST = "lost"
    """Its agent has been silent for longer than its lease."""
    ENDED = "ended"
    """Its object has ended."""


@dataclass(frozen=True, kw_only=True)
class PoolNode:
    """A node, as it stands. Times are in seconds, of one clock."""

    id: str
    life: NodePhase
    since: float
    """Time when that began, as far as is known."""
    shape: Shape = field(default_factory=Shape)
    idle_since: float | None = None
    """Time since when a ready node has no work in hand; None: it has some."""
    ends_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScalingLimits:
    least: int
    most: int
    idle_s: float


@dataclass(frozen=True, kw_only=True)
class ScalingActions:
    """The actions that bring a compute closer to its demand."""

    launch: tuple[Shape, ...] = ()
    drain: tuple[str, ...] = ()
    withdraw: tuple[str, ...] = ()
    """Launches that have not started, and are not needed any more."""
    remove: tuple[str, ...] = ()
    """Over: end what is left of them."""
    forget: tuple[str, ...] = ()
    """Asked for, and not there: nothing came of it."""
    wanted: int = 0


_SUPPLY: Final = frozenset({NodePhase.ASKED, NodePhase.PENDING, NodePhase.STARTING, NodePhase.READY})


def moves(
    demand: Mapping[Shape, int],
    limits: ScalingLimits,
    nodes: Sequence[PoolNode],
    now: float,
    *,
    paused: Mapping[Shape, int],
) -> ScalingActions:
    """Return what brings a compute closer to what its jobs ask for.

    Args:
        demand: nodes of each shape that jobs can keep busy.
        paused: shapes of which launches have failed, and how many may be asked for now. Others have the room.
    """
    forget = tuple(node.id for node in nodes if node.life is NodePhase.ASKED and now - node.since > MISSING_S)
    longest = {NodePhase.ENDED: -1.0, NodePhase.LEFT: LEFT_S, NodePhase.LOST: LOST_S, NodePhase.STARTING: START_S}
    remove = tuple(node.id for node in nodes if node.life in longest and now - node.since > longest[node.life])
    alive = [node for node in nodes if node.life is not NodePhase.ENDED and node.id not in forget]
    supply = [node for node in alive if node.life in _SUPPLY and node.id not in remove]
    lasting = [node for node in supply if _lasts(node, now)]
    had = _most_of_each(supply, paused)
    targets = _wanted({shape: min(count, had.get(shape, count)) for shape, count in demand.items()}, limits, had)
    launch: list[Shape] = []
    drain: list[str] = []
    withdraw: list[str] = []
    starting = sum(node.life is not NodePhase.READY for node in supply)
    room = min(limits.most - len(alive), MOST_STARTING - starting)
    for shape in _shapes(targets, supply):
        count = targets.get(shape, 0)
        stay = [node for node in lasting if node.shape == shape]
        end_soon = [node for node in supply if node.shape == shape and not _lasts(node, now)]
        missing = min(count - len(stay), room - len(launch), paused.get(shape, MOST_STARTING))
        launch += [shape] * max(0, missing)
        # What ends soon makes nobody superfluous who is there in its place.
        if (surplus := len(stay) - count) > 0:
            pending = (node for node in stay if node.life is NodePhase.PENDING)
            early = sorted(pending, key=lambda node: node.since)[-surplus:]
            withdraw += [node.id for node in early]
            drain += [node.id for node in _idle(stay, limits, now)[: surplus - len(early)]]
        drain += [node.id for node in _idle(end_soon, limits, now)[: max(0, len(stay) + len(end_soon) - count)]]
    hoped = {shape: min(count, had.get(shape, count)) for shape, count in targets.items()}
    drain += _in_the_way(hoped, lasting, {*drain, *withdraw}, limits.most - len(alive))
    return ScalingActions(
        launch=tuple(launch), drain=tuple(drain), withdraw=tuple(withdraw), remove=remove, forget=forget,
        wanted=sum(_wanted(demand, limits, {}).values()),
    )  # fmt: skip


def releases(nodes: Iterable[PoolNode], *, by_force: bool) -> ScalingActions:
    """Return what gives back all nodes, those with work in hand as well.

    Args:
        by_force: end those that were asked to leave, too: an agent that is told to end gives back what it has.
    """
    patient = frozenset({NodePhase.READY, NodePhase.LEAVING, NodePhase.LEFT})
    return ScalingActions(
        drain=tuple(node.id for node in nodes if node.life is NodePhase.READY),
        remove=tuple(node.id for node in nodes if by_force or node.life not in patient),
    )


def _wanted(demand: Mapping[Shape, int], limits: ScalingLimits, had: Mapping[Shape, int]) -> dict[Shape, int]:
    """The nodes of each shape: as many as are asked for, in turn, within the limits.

    Args:
        had: how many there can be of shapes that can't be had at will.
    """
    targets = dict.fromkeys(demand, 0)
    room = limits.most
    while room > 0 and (short := [shape for shape in targets if targets[shape] < demand[shape]]):
        each = max(1, room // len(short))
        for shape in short[:room]:
            more = min(each, demand[shape] - targets[shape], room)
            targets[shape] += more
            room -= more
    # What is kept for jobs to come is kept of what can be had: nodes that are there wait for no image.
    missing = max(0, limits.least - sum(targets.values()))
    for shape in sorted(targets, key=lambda each: each != Shape()):
        more = min(missing, max(0, had.get(shape, limits.least) - targets[shape]))
        targets[shape] += more
        missing -= more
    if missing:
        targets[Shape()] = targets.get(Shape(), 0) + missing
    return targets


def _most_of_each(supply: Iterable[PoolNode], paused: Mapping[Shape, int]) -> dict[Shape, int]:
    """Return how many there can be of shapes whose launches have failed: what is there, and what may be tried."""
    supplied = Counter(node.shape for node in supply)
    return {shape: supplied[shape] + count for shape, count in paused.items()}


def _shapes(targets: Mapping[Shape, int], supply: Iterable[PoolNode]) -> list[Shape]:
    return list(dict.fromkeys([*targets, *(node.shape for node in supply)]))


def _lasts(node: PoolNode, now: float) -> bool:
    return node.ends_at is None or node.ends_at - now > REPLACE_S


def _idle(nodes: Iterable[PoolNode], limits: ScalingLimits, now: float) -> list[PoolNode]:
    """Return the nodes that have been idle for long enough, the longest first."""
    idle = [(node.idle_since, node) for node in nodes if node.life is NodePhase.READY and node.idle_since is not None]
    return [node for since, node in sorted(idle, key=lambda each: each[0]) if now - since >= limits.idle_s]


def _in_the_way(
    targets: Mapping[Shape, int], supply: Sequence[PoolNode], going: Collection[str], free: int
) -> list[str]:
    """Idle nodes of other shapes that take the room of those that are wanted: they go at once.

    Args:
        going: those that go anyway.
        free: how many more there may be.
    """
    lacking = sum(max(0, count - sum(node.shape == shape for node in supply)) for shape, count in targets.items())
    spare: list[str] = []
    for shape in _shapes({}, supply):
        mine = [node for node in supply if node.shape == shape]
        idle = [node.id for node in mine if node.life is NodePhase.READY and node.idle_since is not None]
        surplus = max(0, len(mine) - targets.get(shape, 0))
        spare += [each for each in idle if each not in going][:surplus]
    return spare[: max(0, lacking - free - len(going))]


def list_after_s(*, quiet_s: float, cost_s: float) -> float:
    """Return after how many seconds an engine is asked for its nodes again.

    Args:
        quiet_s: since anything has changed, was asked for, or ended.
        cost_s: how long the last answer took.
    """
    return min(max(quiet_s * _OF_QUIET, cost_s * _OF_COST), LONGEST_S)
