"""The result of staging a mini-batch, and what it needs of a store."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from parallelrun_agent.staging.parts import FilePart
from parallelrun_core.storage.interface import Version
from parallelrun_core.wire.outcome import Failure


class StagedObject(NamedTuple):
    """An object that a mini-batch needs."""

    url: str
    version: Version
    target: str
    """The path at which the mini-batch finds it."""
    part: FilePart | None = None
    """The part that is needed; None: all."""

    @property
    def size_bytes(self) -> int:
        """Return how much is fetched, as far as that is known."""
        return self.version.size_bytes if self.part is None else self.part.end - self.part.start


class Staged(NamedTuple):
    """The end of a mini-batch's staging."""

    token: str
    elapsed_s: float
    fetched_bytes: int
    """0 when all of it was on this node already."""
    failure: Failure | None = None
    disk_error: str = ""
    """The node's disk failed, which is nobody's fault."""
    files: int = 1
    missing: Mapping[int, Failure] = MappingProxyType({})
    """By their indexes, why files are not here; none, if it isn't about single files."""
