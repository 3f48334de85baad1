"""Ends the processes that a dead worker leaves behind, daemons included.

A process group has its children, but not a daemon: `setsid` leaves the group, and a second fork leaves the parent. So
worker and agent are both *subreapers*: a process that loses its parent becomes a child of the nearest one above it.
While a worker lives, all its descendants are below it; after its death they are below the agent. So any child of the
agent that is not a worker was left behind by a dead one, and the descendants of living workers are never touched.

A worker gets orphans that way which it doesn't know. It can't wait for them, since a child may be the script's own to
wait for; so each one that ends keeps its process id. A worker that has gathered many of them is replaced.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress

from parallelrun_agent.node.proc import process_ids, stat_of
from parallelrun_core.service.process import become_subreaper, children_of
from parallelrun_core.service.telemetry import logger

log = logger()

_PATIENCE_S = 1.0
_POLL_S = 0.002
_COUNT_EVERY_S = 5.0


class Orphans:
    """The agent's children that are not workers. Does nothing before `begin()`."""

    def __init__(self) -> None:
        self._is_parent = False
        self._workers: set[int] = set()
        self._remaining: set[int] = set()
        """Orphans that did not end in time: the kernel keeps them, or they are another user's. Not awaited again."""
        self._unwaited: Counter[int] = Counter()
        self._count_at = 0.0

    def begin(self, become_parent: Callable[[], bool] = become_subreaper) -> None:
        """Become the parent, from now on, of every descendant that loses its own; only for the agent's own process."""
        self._is_parent = become_parent()

    @property
    def is_parent(self) -> bool:
        """Return whether a descendant that loses its parent becomes a child of this process."""
        return self._is_parent

    def is_worker(self, pid: int) -> bool:
        """Return whether this process was reported as started, and not yet as ended."""
        return pid in self._workers

    def worker_started(self, pid: int) -> None:
        self._workers.add(pid)

    def worker_ended(self, pid: int) -> None:
        """Record that a worker was waited for; what it left behind is ended by the next `reap()`."""
        self._workers.discard(pid)

    def reap(self) -> None:
        """Kill what dead workers have left behind, and wait until it is gone."""
        if not self._is_parent:
            return
        ended: set[int] = set()
        deadline = time.monotonic() + _PATIENCE_S
        while orphans := self._left_behind():
            for pid in orphans:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for pid in orphans:  # those below them become our children when these are gone
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            self._remaining &= orphans
            if not (awaited := orphans - self._remaining):
                break
            ended |= awaited
            if time.monotonic() > deadline:  # the next death of a worker brings another attempt
                log.warning("orphans_remain", pids=sorted(orphans))
                self._remaining = orphans
                return
            time.sleep(_POLL_S)
        if ended:
            log.info("orphans_ended", count=len(ended))

    def unwaited(self, now: float) -> Counter[int]:
        """By process: how many of its ended children have not been waited for. The counts may be a few seconds old."""
        if self._is_parent and now >= self._count_at:
            self._unwaited = _unwaited_among(process_ids())
            self._count_at = now + _COUNT_EVERY_S
        return self._unwaited

    def unwaited_of(self, pid: int) -> int:
        """Return how many ended children of a process have not been waited for, now.

        Only process ids above its own are looked at, as a child's is, unless the ids have begun again from the lowest:
        each look at a process costs 20 microseconds, and most of a machine's are older.
        """
        return _unwaited_among(each for each in process_ids() if each > pid)[pid] if self._is_parent else 0

    def _left_behind(self) -> set[int]:
        # Asked twice, as a child that ends meanwhile can hide another one.
        children = children_of(os.getpid())
        if children is not None and children <= self._workers and children == children_of(os.getpid()):
            return set()
        below = _children()
        orphans: set[int] = set()
        heads = [pid for pid in below[os.getpid()] if pid not in self._workers]
        while heads:
            pid = heads.pop()
            orphans.add(pid)
            heads += below[pid]
        return orphans


def _unwaited_among(pids: Iterable[int]) -> Counter[int]:
    """Return by process how many of its ended children, as far as they are among these, have not been waited for."""
    return Counter(stat.parent for stat in map(stat_of, pids) if stat and stat.has_ended)


def _children() -> defaultdict[int, list[int]]:
    """Every process by its parent: on a machine with many processes, a costly look."""
    below: defaultdict[int, list[int]] = defaultdict(list)
    for pid in process_ids():
        if stat := stat_of(pid):
            below[stat.parent].append(pid)
    return below
