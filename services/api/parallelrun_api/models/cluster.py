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


class Health(Answer):
    """The health of the server."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str] = Field(default={})
    """The checks that were made, and what is wrong with each."""
