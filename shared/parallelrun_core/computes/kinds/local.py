"""Nodes that are processes of the provisioner's own machine."""

from __future__ import annotations

from typing import Literal

from parallelrun_core.computes import definition


class LocalCompute(definition.Compute):
    """Each node is an agent, beside the provisioner."""

    type: Literal["local"]
