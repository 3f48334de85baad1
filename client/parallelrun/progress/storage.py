"""Says in lines for people what a job has read of object stores and of file systems, over all nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from parallelrun_core.answers.reports import StorageRequests

_READS: Final = ("get", "read")
"""Operations that bring data; others are left to the report."""
_MOST_STORES: Final = 5
_SLOWER: Final = 2.0
"""A node is named whose requests take so many times as long as those of the fastest."""


def storage_lines(items: Iterable[StorageRequests]) -> list[str]:
    """Return a line for each store or file system that was read, most bytes first."""
    by_store: dict[str, list[StorageRequests]] = defaultdict(list)
    for item in items:
        if item.operation in _READS and item.requests:
            by_store[item.store].append(item)
    ordered = sorted(by_store, key=lambda store: -sum(item.bytes for item in by_store[store]))
    lines = [_line(store, by_store[store]) for store in ordered[:_MOST_STORES]]
    return [*lines, *([f"and {len(ordered) - _MOST_STORES} more"] if len(ordered) > _MOST_STORES else [])]


def _line(store: str, items: Sequence[StorageRequests]) -> str:
    from parallelrun.progress.text import size
    from parallelrun_core.figures import counted

    requests, latency_ms = sum(item.requests for item in items), _mean_ms(items)
    text = f"{store}: {counted(requests, 'read')}, {size(sum(item.bytes for item in items))}, {latency_ms:.1f} ms each"
    by_node: dict[str, list[StorageRequests]] = defaultdict(list)
    for item in items:
        by_node[item.node].append(item)
    means = {node: _mean_ms(each) for node, each in by_node.items()}
    slowest = max(means, key=lambda node: means[node])
    if means[slowest] > _SLOWER * min(means.values()):
        text += f"; slowest on node {slowest}, {means[slowest]:.1f} ms"
    return text


def _mean_ms(items: Sequence[StorageRequests]) -> float:
    return sum(item.mean_ms * item.requests for item in items) / sum(item.requests for item in items)
