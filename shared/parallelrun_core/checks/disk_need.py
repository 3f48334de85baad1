"""The room that mini-batches need on the disk of a node when their files are copied there, beside what is free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from parallelrun_core.figures import counted

AHEAD: Final = 3
"""Mini-batches that may be on a node's disk for each worker: the one that runs, and the next ones."""
_GB: Final = 10**9


class NodeDisk(NamedTuple):
    """The disk of a node on which a job may run."""

    node: str
    workers: int
    """Number of workers that the job may have there."""
    free_bytes: int
    """Free where files are copied; 0: not known."""

    def needed_bytes(self, mini_batch_bytes: int) -> int:
        """Return the bytes that the largest mini-batches need there."""
        return AHEAD * self.workers * mini_batch_bytes


def too_small(mini_batch_bytes: int, disks: Iterable[NodeDisk]) -> str:
    """Return a sentence about the node that lacks the most room, and what to do; empty: there is enough everywhere.

    Args:
        mini_batch_bytes: size of the largest mini-batch, about; 0: nothing is copied.
    """
    lacking = [disk for disk in disks if 0 < disk.free_bytes < disk.needed_bytes(mini_batch_bytes)]
    if not lacking:
        return ""
    worst = max(lacking, key=lambda disk: disk.needed_bytes(mini_batch_bytes) - disk.free_bytes)
    others = f", and {counted(len(lacking) - 1, 'other node')} less than the job needs" if len(lacking) > 1 else ""
    return (
        f"{worst.node} has {_text(worst.free_bytes)} of disk free{others}: files are copied to the node, a mini-batch "
        f"has about {_text(mini_batch_bytes)}, and {counted(worst.workers, 'worker')} with up to {AHEAD} of them each "
        f"need {_text(worst.needed_bytes(mini_batch_bytes))}. Mini-batches will wait for room, or fail for want of it: "
        "make them smaller, set a lower max_concurrency_per_instance, or use ro_mount where the data can be read in "
        "place"
    )


def _text(count: int) -> str:
    return f"{count / _GB:,.1f} GB" if count >= _GB / 10 else f"{count / 10**6:,.1f} MB"
