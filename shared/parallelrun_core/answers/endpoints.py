"""Batch endpoints and their deployments."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum, Time


class BatchEndpoint(Answer, kw_only=True, frozen=True):
    """A batch endpoint."""

    name: Annotated[str, Meta(examples=["iris"])]
    owner: str = ""
    """The person whose endpoint it is; its jobs belong to those who invoke it. Empty: whoever runs the server."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    default_deployment: str = ""
    """The deployment that is invoked when a request names none; empty: it must name one."""
    deployments: list[str] = []
    created: Time = ""
    """RFC 3339, UTC, milliseconds."""
    modified: Time = ""


class BatchEndpointList(Answer, kw_only=True, frozen=True):
    """All batch endpoints, by name."""

    items: list[BatchEndpoint]


class DeploymentInput(Answer, kw_only=True, frozen=True):
    """An input that an invocation of a pipeline gives."""

    type: str
    default: str | None = None
    """The value when an invocation doesn't give it; none: it must."""


class BatchDeployment(Answer, kw_only=True, frozen=True):
    """A deployment of a batch endpoint."""

    name: Annotated[str, Meta(examples=["blue"])]
    endpoint: Annotated[str, Meta(examples=["iris"])] = ""
    type: OpenEnum[Literal["model", "pipeline"]] = "model"
    description: str = ""
    tags: dict[str, str] = {}
    inputs: dict[str, DeploymentInput] = {}
    """The inputs of a pipeline. A model takes any data."""
    created: Time = ""
    modified: Time = ""
    notes: list[str] = []
    """Fields of its document that have no effect here, or work differently than in Azure ML."""
    spec: dict[str, Any] = {}
    """Its job, with placeholders for what an invocation gives; the values of `environment_variables` are masked."""


class BatchDeploymentList(Answer, kw_only=True, frozen=True):
    """The deployments of an endpoint, by name."""

    items: list[BatchDeployment]
