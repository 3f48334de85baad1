"""A profile as a tree of calls, for an icicle view.

A profiler of Python knows who calls whom, and not by which way a caller was reached. So what a function takes below one
of its callers is divided among the ways to that caller by their time.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from parallelrun_api.profiles.sums import Function, ProfileSum


class TreeNode(NamedTuple):
    """One call, by the way that leads to it."""

    parent: int
    """The place of its caller in the list; -1: the engine."""
    depth: int
    function: Function
    seconds: float
    own_s: float
    """What of it is not in functions that it calls. Some of these may be missing in the tree."""


def tree_of(profile: ProfileSum, *, depth: int, limit: int) -> list[TreeNode]:
    """The calls that take most, each after its caller.

    Args:
        depth: how many calls below the engine, at most.
        limit: how many calls altogether, at most.
    """
    waiting = [
        (-profile.functions[root].cumulative_s, number, -1, root)
        for number, root in enumerate(profile.roots())
    ]  # fmt: skip
    heapq.heapify(waiting)
    nodes: list[TreeNode] = []
    pushed = len(waiting)
    while waiting and len(nodes) < limit:
        minus_s, _, parent, function = heapq.heappop(waiting)
        total, seconds = profile.functions[function], -minus_s
        share = min(1.0, seconds / total.cumulative_s) if total.cumulative_s > 0 else 0.0
        at = nodes[parent].depth + 1 if parent >= 0 else 0
        nodes.append(TreeNode(parent, at, function, seconds, total.own_s * share))
        if at + 1 >= depth:
            continue
        way = _way(nodes, len(nodes) - 1)
        for callee, call in profile.calls.get(function, {}).items():
            spent_s = min(seconds, call.cumulative_s * share)
            if callee not in way and spent_s > 0:  # a recursion has its time in the outermost call already
                heapq.heappush(waiting, (-spent_s, pushed, len(nodes) - 1, callee))
                pushed += 1
    return nodes


def _way(nodes: list[TreeNode], at: int) -> set[Function]:
    way = set()
    while at >= 0:
        way.add(nodes[at].function)
        at = nodes[at].parent
    return way
