"""Records of an endpoint and of its deployments."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from parallelrun_core.documents.schema import SCHEMA

PLACE: Final = "__parallelrun_input_{}__"
"""Stands in a pipeline for what an invocation gives as this input."""


class Endpoint(msgspec.Struct, kw_only=True, frozen=True):
    """`endpoint.json`."""

    schema: int = SCHEMA
    name: str
    made: float
    at: float
    """Time when it was last defined."""
    owner: str = ""
    """The person who made it; empty: nobody in particular."""
    default_deployment: str = ""
    """The one that is invoked when a request names none."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}


class Slot(msgspec.Struct, kw_only=True, frozen=True):
    """An input of a pipeline that an invocation gives."""

    type: str
    """The type in the component's declaration: `uri_folder`, `uri_file`, `mltable`, or `string`."""
    default: str | None = None
    """The value when an invocation doesn't give one; None: it must."""

    @property
    def is_data(self) -> bool:
        """Return whether it is the place of data, and no text."""
        return self.type != "string"


class Deployment(msgspec.Struct, kw_only=True, frozen=True):
    """`deployments/<name>.json`: a job that lacks nothing but its data; its code is in the store."""

    schema: int = SCHEMA
    name: str
    endpoint: str
    made: float
    at: float
    """Time when it was last defined."""
    type: Literal["model", "pipeline"]
    job: dict[str, Any]
    """A job spec, or that of a pipeline with placeholders for what an invocation gives."""
    slots: dict[str, Slot] = {}
    """The inputs of a pipeline that an invocation gives. A model takes any data."""
    notes: list[str] = []
    description: str = ""
    tags: dict[str, str] = {}
