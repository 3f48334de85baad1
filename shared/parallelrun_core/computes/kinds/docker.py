"""Nodes that are containers of one Docker Engine."""

from __future__ import annotations

from typing import ClassVar, Literal

from parallelrun_core.computes.containers import Containers


class DockerCompute(Containers):
    """Each node is a container."""

    has_images: ClassVar[bool] = True
    builds_images: ClassVar[bool] = True
    type: Literal["docker"]
