"""The definition of a compute: how many nodes it may have, how long an idle one stays, and what a node is.

The fields of the first block are those of Azure ML's `amlcompute`; what is below `kinds` belongs to
one engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from pydantic import Field, StrictBool, ValidationInfo, field_validator, model_validator

from parallelrun_core.computes.launch import Shape
from parallelrun_core.described import Strict
from parallelrun_core.names.patterns import COMPUTE_NAME

if TYPE_CHECKING:
    from parallelrun_core.spec.job import JobSpec

IDLE_S: Final = 120.0
_NUMBERS: Final = (int, float, int | None, float | None)


class Compute(Strict):
    """The fields that computes of all kinds have."""

    has_images: ClassVar[bool] = False
    """True if its nodes can be of the image that a job names."""
    builds_images: ClassVar[bool] = False
    """True if they can also be of one that is built for a job."""

    name: str = Field(pattern=COMPUTE_NAME, examples=["cpu-cluster"])
    description: str = Field(default="", max_length=4096)
    tags: dict[str, str] = Field(default_factory=dict)
    size: str = Field(default="", max_length=256)
    """A name for people; what a node is, the fields of the engine say."""
    min_instances: int = Field(default=0, ge=0, le=100_000)
    """Nodes that are there also when no job needs them."""
    max_instances: int = Field(default=1, ge=1, le=100_000)
    """Nodes that it never exceeds."""
    idle_time_before_scale_down: float = Field(default=IDLE_S, ge=0, le=86_400)
    """Seconds that a node without work stays."""
    tier: Literal["dedicated", "low_priority"] = "dedicated"

    slots: int | None = Field(default=None, ge=1, le=4096)
    """Workers that run on a node at the same time; as many as it has CPUs when not set."""
    cpus: float | None = Field(default=None, gt=0, le=4096)
    """CPUs of a node; what the engine gives when not set."""
    memory_bytes: int | None = Field(default=None, ge=1 << 20)
    """Memory of a node; what the engine gives when not set."""
    gpus: int = Field(default=0, ge=0, le=1024)
    """GPUs of a node."""
    is_default: StrictBool = False
    """True if it runs the jobs that name no compute. At most one does; if none does, nodes without a compute do."""

    @property
    def kind(self) -> str:
        """The engine that provides its nodes."""
        return str(self.model_dump(include={"type"})["type"])

    def shape_of(self, spec: JobSpec) -> Shape:
        """Return what a node must be for a job: nodes of other shapes don't work for it."""
        return Shape(image=spec.environment.node_image if self.has_images else "")

    @field_validator("*", mode="before")
    @classmethod
    def _is_as_written(cls, value: object, info: ValidationInfo) -> object:
        is_number = cls.model_fields[str(info.field_name)].annotation in _NUMBERS
        if is_number and isinstance(value, bool | str):
            raise ValueError("must be a number")  # where a switch or a text would be taken for one
        return value

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.min_instances > self.max_instances:
            raise ValueError("min_instances must not be more than max_instances")
        return self
