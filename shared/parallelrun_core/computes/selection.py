"""Selection of the compute that a job runs on: the one that it names, or the default one.

It is decided once, when a job is submitted, and is then part of its spec: whoever looks for work compares two names,
and knows of no catalog. As long as no compute is defined, names have no effect: documents that were written for
another cluster run on the nodes that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.computes import plain_name

if TYPE_CHECKING:
    from parallelrun_core.spec import JobSpec

ANYWHERE: Final = frozenset({"local", "serverless"})
"""Names that mean the nodes without a compute, unless a compute has the name."""


class Selection:
    """The computes that jobs may name, as they are defined now."""

    def __init__(self, catalog: ComputeCatalog) -> None:
        self._catalog = catalog
        self._names = catalog.names()

    def compute_of(self, named: str, pointer: str = "/compute") -> str:
        """The compute that a job runs on which names this one; empty: the nodes without a compute.

        Args:
            named: as in the job's spec; empty: it names none.

        Raises:
            InvalidInput: computes are defined, and this isn't one.
            OSError: the volume can't be read.
        """
        name = plain_name(named)
        if not self._names or name in self._names:
            return name if self._names else ""
        if not name:
            return self._catalog.default()
        if name.lower() in ANYWHERE:
            return ""
        raise InvalidInput.at(pointer, f"there is no compute {name[:50]!r}", self._catalog.hint(name))

    def place(self, spec: JobSpec, pointer: str = "/compute") -> dict[str, Any]:
        """The fields of a job's recorded spec that say on which nodes it runs.

        Raises:
            InvalidInput, OSError: as `compute_of`; or an image is to be built, and the compute has nodes of images,
                but builds none.
            CorruptLog: the definition of the compute can't be read.
        """
        name = self.compute_of(spec.compute, pointer)
        placed: dict[str, Any] = {"compute": name}
        environment = spec.environment
        if not name or not (environment.image or environment.build):
            return placed
        compute = self._catalog.get(name)
        if not compute.has_images:
            placed["environment"] = {**environment.model_dump(mode="json"), "image": "", "build": None}
        elif environment.build and not compute.builds_images:
            raise InvalidInput.at(
                "/environment/build",
                f"no image is built for the nodes of compute {name!r}, which is of type {compute.kind}",
                "name a compute of type docker; or build it, put it where these nodes can fetch it, and name it in "
                "`image`",
            )
        return placed


def computes_in(spec: Mapping[str, Any]) -> set[str]:
    """The computes that a job or a pipeline runs on, by the spec that is recorded of it."""
    named = {str(spec["compute"])} if spec.get("compute") else set()
    steps = spec.get("steps")
    for step in steps.values() if isinstance(steps, Mapping) else ():
        named |= computes_in(step["job"])
    return named
