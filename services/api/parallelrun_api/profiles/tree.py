"""A profile as a tree of calls, for an icicle view.

A profiler of Python knows who calls whom, and not by which way a caller was reached. So what a function takes below one
of its callers is divided among the ways to that caller by their time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from parallelrun_api.profiles.sums import Function, ProfileSum


class TreeNode(NamedTuple):
    """A call, by the way that leads to it."""

    parent: int
    """The place of its caller in the list; -1: the engine."""
    depth: int
    function: Function
    seconds: float
    own_s: float
    """Seconds of the call that are not in functions that it calls. Some of these may be missing in the tree."""


def tree_of(profile: ProfileSum, *, depth: int, limit: int) -> list[TreeNode]:
    """The calls that take most, each after its caller.

    Args:
        depth: how many calls below the engine, at most.
        limit: how many calls altogether, at most.
    """
    roots = iter([(profile.functions[root].cumulative_s, root) for root in profile.roots()])
    by_time = _ByTime(profile)
    nodes: list[TreeNode] = []
    waiting = list[tuple[float, int, int, Function, _Calls]]()
    pushed = _push(waiting, 0, -1, roots)
    while waiting and len(nodes) < limit:
        minus_s, _, parent, function, others = heapq.heappop(waiting)
        pushed = _push(waiting, pushed, parent, others)
        total, seconds = profile.functions[function], -minus_s
        share = min(1.0, seconds / total.cumulative_s) if total.cumulative_s > 0 else 0.0
        at = nodes[parent].depth + 1 if parent >= 0 else 0
        nodes.append(TreeNode(parent, at, function, seconds, total.own_s * share))
        if at + 1 < depth:
            way = _way(nodes, len(nodes) - 1)
            pushed = _push(waiting, pushed, len(nodes) - 1, by_time.calls(function, seconds, share, way))
    return nodes


_Calls = Iterator[tuple[float, Function]]
"""What somebody calls, and its seconds: the most first."""


def _push(waiting: list[tuple[float, int, int, Function, _Calls]], pushed: int, parent: int, calls: _Calls) -> int:
    """Have the next one of these wait: the others are no longer, so no more wait than were shown."""
    for seconds, function in calls:
        heapq.heappush(waiting, (-seconds, pushed, parent, function, calls))
        return pushed + 1
    return pushed


class _ByTime:
    """The calls of each function, the longest first."""

    def __init__(self, profile: ProfileSum) -> None:
        self._calls = profile.calls
        self._sorted: dict[Function, list[tuple[Function, float]]] = {}

    def calls(self, caller: Function, seconds: float, share: float, way: set[Function]) -> _Calls:
        """Return the calls of a function that are not on the way to it: a recursion has its time in the outermost call
        already."""
        if caller not in self._sorted:
            callees = [(callee, call.cumulative_s) for callee, call in self._calls.get(caller, {}).items()]
            self._sorted[caller] = sorted(callees, key=lambda each: -each[1])
        for callee, cumulative_s in self._sorted[caller]:
            spent_s = min(seconds, cumulative_s * share)
            if spent_s <= 0:
                return
            if callee not in way:
                yield spent_s, callee


def _way(nodes: list[TreeNode], at: int) -> set[Function]:
    way = set()
    while at >= 0:
        way.add(nodes[at].function)
        at = nodes[at].parent
    return way
