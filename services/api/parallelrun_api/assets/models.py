"""The answers about assets: schemas of `docs/openapi.json`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from parallelrun_api.models.answer import Answer
from parallelrun_core.names.assets import NAME_PATTERN, kinds


def _known(kind: str) -> str:
    if kind not in kinds():
        raise ValueError(f"must be one of {', '.join(kinds())}")
    return kind


Kind = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(kinds())})]
"""A kind of assets."""


class Asset(Answer):
    """A version of an asset. Its content never changes."""

    type: Kind
    name: str = Field(examples=["images"])
    version: str = Field(examples=["3"])
    id: str = Field(examples=["azureml:images:3"])
    """The name by which a job's document refers to it."""
    created: str = Field(examples=["2026-11-21T09:30:00.000Z"])
    """RFC 3339, UTC, milliseconds."""
    owner: str = ""
    """The person who made the version. Empty: whoever runs the server."""
    description: str = ""
    tags: dict[str, str] = Field(default={})
    properties: dict[str, str] = Field(default={})
    archived: bool = False
    """Hidden from lists and from `latest`; found by its name all the same."""
    content: dict[str, Any]
    """The content by type. `path`, if there is one, is where its files are."""


class AssetPage(Answer):
    """Some assets, each by the version that was created last; or some versions of one, the newest first."""

    items: list[Asset]
    next_page_token: str | None = None
    """Pass it as `page_token` for those that follow; null: there are none."""


class AssetLabels(Answer):
    """The labels of an asset."""

    labels: dict[str, str] = Field(examples=[{"latest": "3", "stable": "2"}])
    """The labels, each with the version that has it; `latest` is always there."""


class LabelRequest(BaseModel):
    """The version that a label is to stand for."""

    model_config = ConfigDict(extra="forbid")

    version: str = Field(pattern=NAME_PATTERN, examples=["2"])


class SitePlaces(Answer):
    """The locations in the server's site file; the assets in it are found by the server itself."""

    datastores: dict[str, str] = Field(default={})
    """The names of datastores, each with the place where its paths begin here."""
    locations: dict[str, str] = Field(default={})
    """The beginnings of URLs, each with the place that stands for it here."""
