"""Workers of a node as they are now: which mini-batches they run, and why they run none. It is for those who watch a
job; nothing is decided by it."""

from __future__ import annotations

from typing import Literal

import msgspec

Doing = Literal["init", "loading", "running", "waiting_for_data", "idle", "ending"]
"""Step of a worker's life: `init()`, reading the data of a mini-batch, `run()`, waiting for files that are on their way
to the node, without anything to do, `shutdown()` and exit."""


class TryAtWork(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A try that a worker has begun and not ended."""

    mini_batch: int
    number: int
    """Number of the try: 1 is the first one."""
    items: int
    """0: not known yet."""
    began: float
    """Seconds since the epoch on the node's clock, as all times here."""
    loaded: float = 0.0
    """Time when `run()` was called; 0: its data are being read."""


class WorkerAtWork(msgspec.Struct, array_like=True, frozen=True, gc=False):
    process: str
    doing: Doing
    since: float
    """Time when that began."""
    tries: list[TryAtWork] = []
    """Several for a worker that runs several mini-batches at once: the oldest ones."""
    in_flight: int = 0
    """Number of mini-batches that it runs; 0 from an agent of an earlier release, too."""


class NodeWork(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Work of one node for one job, as its heartbeat has it; with each worker, as a report of the job's own has it.
    Times are seconds since the epoch, by the clock of the node."""

    preparing: str = ""
    """Word for what workers still need there: `code`, `environment`, `inputs` or `tracking` (of metrics);
    empty: nothing."""
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
    in_flight: int = 0
    """Mini-batches that its workers run, if each may run several; 0 otherwise."""
    target: int = -1
    """Number of workers that is its share there; -1: it shares the node with nobody."""
    at: float = 0.0
    """Time of the report; 0 in a heartbeat, which has a time of its own."""
    workers: list[WorkerAtWork] = []
    """All of its workers there; none in a heartbeat, which would grow with them."""
