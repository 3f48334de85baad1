"""Nodes join a small job one after the other. Pure policy, no I/O.

Joining costs a node more than many mini-batches do: folders, keys, workers. So a job that fits on one node gets one,
the first with a free slot that asks for it, and others only when its mini-batches still wait a moment later. A larger
job gets all nodes at once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

Decision = Literal["join", "ask", "wait"]
"""`ask`: join if no other node has asked before."""

_NO_SLOT_S: Final = 0.25
"""How long a node without a free slot leaves a job to those that have one."""
_TAKEN_S: Final = 1.0
"""After so long, any mini-batch that waits gets a node more, if it has a free slot."""
_TAKEN_NO_SLOT_S: Final = 2.0
"""After so long, they also get a node that must take a slot from others."""


@dataclass(slots=True)
class _Waiting:
    """A job that the node hasn't joined.

    Args:
        since: when a mini-batch of it waited for the first time; None: none has. It stays: a job that comes to its
            mini-batches a few at a time is no small one.
        had_nodes: some node has worked for it.
        is_taken: this node has asked for it, and another one was faster.
    """

    since: float | None = None
    had_nodes: bool = False
    is_taken: bool = False


class JoinOrder:
    """The rules by which a node joins jobs.

    Args:
        slots: workers that it can have at the same time; other nodes are taken to have as many.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._waiting: dict[str, _Waiting] = {}

    def keep_only(self, job_ids: Collection[str]) -> None:
        """Forget all other jobs."""
        if self._waiting:
            self._waiting = {job_id: each for job_id, each in self._waiting.items() if job_id in job_ids}

    def left_to_another(self, job_id: str) -> None:
        """Record that another node has asked for a job before."""
        self._waiting.setdefault(job_id, _Waiting()).is_taken = True

    def decide(self, job_id: str, *, ready: int, sessions: int, free_slots: int, now: float) -> Decision:
        """Return what to do about a job that the node hasn't joined.

        Args:
            ready: mini-batches that wait for any node.
            sessions: nodes that work for it.
            free_slots: of this node.
            now: monotonic.
        """
        job = self._waiting.setdefault(job_id, _Waiting())
        had_nodes, job.had_nodes = job.had_nodes, job.had_nodes or sessions > 0
        if ready <= 0:
            return "wait"
        if job.since is None:
            job.since = now
        waited_s = now - job.since
        if ready > self._slots * max(1, sessions) or (had_nodes and not sessions):
            return "join"  # it is large, or its nodes are lost
        if not sessions and not job.is_taken:
            return "wait" if free_slots <= 0 and waited_s < _NO_SLOT_S else "ask"
        return "join" if waited_s >= (_TAKEN_S if free_slots > 0 else _TAKEN_NO_SLOT_S) else "wait"
