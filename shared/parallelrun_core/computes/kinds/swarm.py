"""Nodes that are services of a Docker Swarm, which places each on one of its machines."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from parallelrun_core.computes.containers import Containers

_CONSTRAINT: Final = re.compile(r"(?:node|engine)\.[A-Za-z0-9_.-]{1,128} ?[!=]= ?[A-Za-z0-9_.:/-]{1,256}")


def _checked_constraint(value: str) -> str:
    if not _CONSTRAINT.fullmatch(value):
        raise ValueError("a constraint is written as in node.labels.tier==spot")
    return value


Constraint = Annotated[
    str, AfterValidator(_checked_constraint), Field(json_schema_extra={"pattern": f"^{_CONSTRAINT.pattern}$"})
]


class SwarmCompute(Containers):
    """Each node is a service with one task, which is not started again when it has ended."""

    has_images: ClassVar[bool] = True
    type: Literal["swarm"]
    constraints: tuple[Constraint, ...] = Field(default=(), max_length=32)
    """The machines on which its nodes may run, as in `node.labels.tier==spot`."""
    gpu_resource: str = Field(default="NVIDIA-GPU", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """The name of a GPU in the `node-generic-resources` of the machines' engines."""
