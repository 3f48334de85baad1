"""Datastores, and the health of the server."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from parallelrun_api.models.answer import Answer


class Datastore(Answer):
    """A named place in an object store."""

    name: str = Field(examples=["images"])
    type: Literal["s3", "gcs", "azure_blob", "azure_data_lake_gen2"]
    location: str = Field(examples=["s3://our-images"])
    """The URL that paths in it begin from."""
    access: Literal["node", "secret", "anonymous"]
    """The source of credentials: what the nodes have by themselves, a file in their folders of secrets, nowhere."""
    definition: dict[str, Any]
    """The fields as they were defined, without those that are as by default."""


class DatastoreList(Answer):
    """All datastores."""

    items: list[Datastore]


class RateLimit(Answer):
    """A limit on calls of a service that somebody else runs, for all jobs together; null: no such limit."""

    name: str = Field(examples=["openai"])
    requests_per_minute: int | None = None
    """Calls that begin in any minute."""
    tokens_per_minute: int | None = None
    """Tokens that the calls which begin in any minute have together."""
    in_flight: int | None = None
    """Calls that are made at the same time."""


class RateLimitList(Answer):
    """All limits."""

    items: list[RateLimit]


class Health(Answer):
    """The health of the server."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str] = Field(default={})
    """The checks that were made, and what is wrong with each."""
