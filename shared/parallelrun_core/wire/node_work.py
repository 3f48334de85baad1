"""Work of a node for one job, as its heartbeats report it. Leaders and the API tell people who wait from it."""

from __future__ import annotations

import msgspec


class NodeWork(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Work of one node for one job. Times are seconds since the epoch, by the clock of the node."""

    preparing: str = ""
    """Word for what workers still need there: `code`, `environment` or `inputs`; empty: nothing."""
    init_since: float = 0.0
    """Start of the worker that is in `init()` for longest; 0: none is."""
    init_limit_s: float = 0.0
    """Seconds that `init()` may take."""
    longest: int = -1
    """Id of the mini-batch that runs for longest; -1: none runs."""
    longest_since: float = 0.0
    """Time when that one began."""
    frees_in_s: float = 0.0
    """Seconds until a worker may be taken back for another job, by its own start; then it ends with its mini-batch."""
    lacks_memory: bool = False
    """True if the node starts no worker for it, since there is no memory beside those of other jobs."""
    target: int = -1
    """Number of workers that is its share there; -1: it shares the node with nobody."""
