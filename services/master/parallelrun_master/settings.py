"""Settings of a master."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from parallelrun_core.hosting.settings import ReadsStores
from parallelrun_core.retention.rules import Rules
from parallelrun_master.policy.notices import Allowed


class MasterSettings(Rules, ReadsStores):
    """Settings of one master."""

    redis_user: ClassVar[str] = "master"

    leaders: int = Field(default=8, ge=1, le=256)
    """Jobs that this master can lead at the same time."""
    notify_allow: str = ""
    """The addresses that notices of the end of jobs may go to besides public ones: networks, hosts and `*.DOMAIN`,
    separated by commas; `*`: anywhere. Link-local addresses only by their network."""
    trace_mini_batches: int = Field(default=1000, ge=0, le=100_000)
    """The most mini-batches of a job that are in its trace, where there are traces (OTEL_EXPORTER_OTLP_ENDPOINT)."""
    mlflow_tracking_uri: str = ""
    """The tracking URI of the agents. This master's credentials for MLflow are sent to no other server."""

    sweep_minutes: float = Field(default=60.0, ge=0)
    """Minutes between two sweeps of retention, which remove what the `keep` settings don't keep; 0: only when somebody
    asks for one (`parallelrun admin prune`)."""

    @field_validator("notify_allow")
    @classmethod
    def _networks_and_hosts(cls, value: str) -> str:
        Allowed.parse(value)
        return value
