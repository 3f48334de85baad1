"""Nodes that somebody starts: agents with `--compute NAME`. Nothing is provisioned."""

from __future__ import annotations

from typing import Literal

from parallelrun_core.computes import definition


class ManualCompute(definition.Compute):
    """Its nodes are those that say that they belong to it."""

    type: Literal["manual"]
