"""Nodes that are on the Moon."""

from __future__ import annotations

from typing import Literal

from parallelrun_core.computes import definition


class MoonCompute(definition.Compute):
    """Each node is a crater."""

    type: Literal["moon"]
    crater: str
    """The first of them."""
