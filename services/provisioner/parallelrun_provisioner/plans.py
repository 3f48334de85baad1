"""Node plans: the request that an engine is sent for the nodes of one compute, by the image that a job has named for
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from parallelrun_core.computes.launch import Launch, Shape
from parallelrun_provisioner.engines.interface import Engine, EngineError

_MOST_IMAGES: Final = 20
"""A status has no more of them: it is written each round."""


class Plans:
    """Each plan is made once, unless its node is refused: an operator may allow it later.

    Args:
        launch_of: a launch of a node of this shape.
    """

    def __init__(self, engine: Engine, launch_of: Callable[[Shape], Launch]) -> None:
        self._engine = engine
        self._launch_of = launch_of
        self._plans: dict[Shape, str] = {}

    def of(self, shape: Shape) -> str:
        """Exactly what is sent for a node of this shape, or why nothing is."""
        if shape not in self._plans:
            try:
                self._plans[shape] = self._engine.plan(self._launch_of(shape))
            except EngineError as error:
                return str(error)
        return self._plans[shape]

    def of_images(self, shapes: Iterable[Shape]) -> dict[str, str]:
        """The plans of those of these shapes that have an image, by that; what is of no use any more is forgotten."""
        images = sorted({shape.image for shape in shapes if shape.image})[:_MOST_IMAGES]
        self._plans = {shape: plan for shape, plan in self._plans.items() if shape.image in ("", *images)}
        return {image: self.of(Shape(image=image)) for image in images}
