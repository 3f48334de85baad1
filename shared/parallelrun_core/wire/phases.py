"""Phases of a worker besides its mini-batches, as its agent reports them: init() and shutdown()."""

from __future__ import annotations

from typing import Literal

import msgspec

from parallelrun_core.wire.outcome import Failure

PhaseName = Literal["INIT", "SHUTDOWN"]


class InitFailure(msgspec.Struct, array_like=True, frozen=True):
    """A worker that died or raised before its first mini-batch."""

    node: str
    process: str
    failure: Failure
    started: float = 0.0
    seconds: float = 0.0


class Phase(msgspec.Struct, array_like=True, frozen=True):
    """A worker's init() or shutdown() that has ended."""

    node: str
    process: str
    name: PhaseName
    started: float
    """Seconds since the epoch on the node's clock."""
    seconds: float
    failure: Failure | None = None
