"""Nodes that are on the Moon, which nobody reaches yet."""

from __future__ import annotations

from parallelrun_core.computes.definition import Compute


class MoonEngine:
    """Launches nothing."""

    def __init__(self, compute: Compute, around: object) -> None:
        raise OSError(f"no rocket goes to {compute.name}")
