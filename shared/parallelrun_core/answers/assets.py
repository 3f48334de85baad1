"""Assets."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, Time, answer_of, rfc3339
from parallelrun_core.names import assets as names
from parallelrun_core.names.assets import kinds


class Asset(Answer, kw_only=True, frozen=True):
    """A version of an asset. Its content never changes."""

    type: Annotated[str, Meta(extra_json_schema={"enum": list(kinds())})]
    name: Annotated[str, Meta(examples=["images"])]
    version: Annotated[str, Meta(examples=["3"])]
    id: Annotated[str, Meta(examples=["azureml:images:3"])] = ""
    """The name by which a job's document refers to it."""
    created: Time = ""
    owner: str = ""
    """The person who made the version. Empty: whoever runs the server."""
    description: str = ""
    tags: dict[str, str] = {}
    properties: dict[str, str] = {}
    archived: bool = False
    """Hidden from lists and from `latest`; found by its name all the same."""
    content: dict[str, Any] = {}
    """The content by type. `path`, if there is one, is where its files are."""

    @classmethod
    def of(cls, asset: names.Asset) -> Asset:
        """Return an asset of a catalog as it is answered."""
        return answer_of(cls, asset, created=rfc3339(asset.created), archived=asset.is_archived)

    @property
    def path(self) -> str:
        """Return where its files are; empty if it has none."""
        return str(self.content.get("path", ""))


class AssetPage(Answer, kw_only=True, frozen=True):
    """Some assets, each by the version that was created last; or some versions of one, the newest first."""

    items: list[Asset]
    next_page_token: str | None = None
    """Pass it as `page_token` for those that follow; null: there are none."""


class AssetLabels(Answer, kw_only=True, frozen=True):
    """The labels of an asset."""

    labels: Annotated[dict[str, str], Meta(examples=[{"latest": "3", "stable": "2"}])]
    """The labels, each with the version that has it; `latest` is always there."""


class SitePlaces(Answer, kw_only=True, frozen=True):
    """The locations in the server's site file; the assets in it are found by the server itself."""

    datastores: dict[str, str] = {}
    """The names of datastores, each with the place where its paths begin here."""
    locations: dict[str, str] = {}
    """The beginnings of URLs, each with the place that stands for it here."""
