"""Nodes that are containers of one Docker Engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from parallelrun_core.computes.containers import Containers
from parallelrun_core.computes.launch import Shape

if TYPE_CHECKING:
    from parallelrun_core.spec.job import JobSpec


class Compute(Containers):
    """Each node is a container."""

    has_images: ClassVar[bool] = True
    type: Literal["docker"]

    def shape_of(self, spec: JobSpec) -> Shape:
        """Nodes of the image that a job names."""
        return Shape(image=spec.environment.image)
