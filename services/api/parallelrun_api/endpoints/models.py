"""The answers about batch endpoints: schemas of `docs/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from parallelrun_api.models.answer import Answer


class BatchEndpoint(Answer):
    """A batch endpoint."""

    name: str = Field(examples=["iris"])
    owner: str = ""
    """The person whose endpoint it is; its jobs belong to those who invoke it. Empty: whoever runs the server."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = Field(default={})
    default_deployment: str = ""
    """The deployment that is invoked when a request names none; empty: it must name one."""
    deployments: list[str] = Field(default=[])
    created: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    """RFC 3339, UTC, milliseconds."""
    modified: str = Field(examples=["2026-11-21T09:30:00.000Z"])


class BatchEndpointList(Answer):
    """All batch endpoints, by name."""

    items: list[BatchEndpoint]


class DeploymentInput(Answer):
    """An input that an invocation of a pipeline gives."""

    type: str
    default: str | None = None
    """The value when an invocation doesn't give it; none: it must."""


class BatchDeployment(Answer):
    """A deployment of a batch endpoint."""

    name: str = Field(examples=["blue"])
    endpoint: str = Field(examples=["iris"])
    type: Literal["model", "pipeline"]
    description: str = ""
    tags: dict[str, str] = Field(default={})
    inputs: dict[str, DeploymentInput] = Field(default={})
    """The inputs of a pipeline. A model takes any data."""
    created: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    modified: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    notes: list[str] = Field(default=[])
    """Fields of its document that have no effect here, or work differently than in Azure ML."""
    spec: dict[str, Any]
    """Its job, with placeholders for what an invocation gives; the values of `environment_variables` are masked."""


class BatchDeploymentList(Answer):
    """The deployments of an endpoint, by name."""

    items: list[BatchDeployment]
