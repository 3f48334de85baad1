"""The answers about assets: schemas of `docs/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from parallelrun_api.models.answer import Answer
from parallelrun_core.assets.names import NAME_PATTERN

Kind = Literal["data", "model", "environment", "component", "code"]


class Asset(Answer):
    """A version of an asset. Its content never changes."""

    type: Kind
    name: str = Field(examples=["images"])
    version: str = Field(examples=["3"])
    id: str = Field(examples=["azureml:images:3"])
    """How a job's document names it."""
    created: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    """RFC 3339, UTC, milliseconds."""
    description: str = ""
    tags: dict[str, str] = Field(default={})
    properties: dict[str, str] = Field(default={})
    archived: bool = False
    """Hidden from lists and from `latest`; found by its name all the same."""
    content: dict[str, Any]
    """What it is, by type. `path`, if there is one, is where its files are."""


class AssetPage(Answer):
    """Some assets, each by the version that was created last; or some versions of one, the newest first."""

    items: list[Asset]
    next_page_token: str | None = None
    """Pass it as `page_token` for those that follow; null: there are none."""


class AssetLabels(Answer):
    """The labels of an asset."""

    labels: dict[str, str] = Field(examples=[{"latest": "3", "stable": "2"}])
    """From each label to the version that has it; `latest` is always there."""


class LabelRequest(BaseModel):
    """Which version a label is to stand for."""

    model_config = ConfigDict(extra="forbid")

    version: str = Field(pattern=NAME_PATTERN, examples=["2"])


class SitePlaces(Answer):
    """What the server's site file says of places; what it says of assets, the server finds by itself."""

    datastores: dict[str, str] = Field(default={})
    """From the name of a datastore to where its paths begin here."""
    locations: dict[str, str] = Field(default={})
    """From what URLs begin with to where that is here."""
