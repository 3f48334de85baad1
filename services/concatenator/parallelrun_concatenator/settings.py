"""Settings of a concatenator."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from parallelrun_core.hosting.settings import ReadsStores


class ConcatenatorSettings(ReadsStores):
    """Settings of one concatenator."""

    redis_user: ClassVar[str] = "concatenator"

    concatenators: int = Field(default=2, ge=1, le=64)
    """Jobs whose output it puts together at the same time."""
