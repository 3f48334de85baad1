"""Settings of a master."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from parallelrun_core.service.settings import ReadsStores


class MasterSettings(ReadsStores):
    """Settings of one master."""

    redis_user: ClassVar[str] = "master"

    leaders: int = Field(default=8, ge=1, le=256)
    """Jobs that this master can lead at the same time."""
    mlflow_tracking_uri: str = ""
    """That of the agents. This master's credentials for MLflow are sent to no other server."""
