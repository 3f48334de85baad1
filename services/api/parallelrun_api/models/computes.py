"""Computes: named pools of like nodes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from parallelrun_api.models.answer import Answer


class Compute(Answer):
    """A named pool of like nodes."""

    name: str = Field(examples=["cpu-cluster"])
    type: str = Field(examples=["docker"])
    """The kind: the engine that has its nodes."""
    min_instances: int
    max_instances: int
    is_default: bool
    """Whether it runs the jobs that name no compute."""
    definition: dict[str, Any]
    """As it was given, without what is the same as by default."""


class ComputeList(Answer):
    """All computes."""

    items: list[Compute]
