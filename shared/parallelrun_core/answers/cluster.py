"""Datastores, limits on services, and the health of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from parallelrun_core.answers.answer import Answer, OpenEnum

if TYPE_CHECKING:
    from parallelrun_core.datastores.definition import Datastore as Definition


class Datastore(Answer, kw_only=True, frozen=True):
    """A named place in an object store."""

    name: Annotated[str, Meta(examples=["images"])]
    type: Annotated[str, Meta(examples=["s3"])]
    location: Annotated[str, Meta(examples=["s3://our-images"])] = ""
    """The URL that paths in it begin from."""
    access: OpenEnum[Literal["node", "secret", "anonymous"]]
    """The source of credentials: what the nodes have by themselves, a file in their folders of secrets, nowhere."""
    definition: dict[str, Any] = {}
    """The fields as they were defined, without those that are as by default."""

    @classmethod
    def of(cls, datastore: Definition) -> Datastore:
        """Return a definition as it is answered."""
        return cls(
            name=datastore.name,
            type=datastore.type,
            location=datastore.root,
            access="anonymous" if datastore.anonymous else "secret" if datastore.credentials else "node",
            definition=datastore.model_dump(mode="json", exclude_defaults=True),
        )


class DatastoreList(Answer, kw_only=True, frozen=True):
    """All datastores."""

    items: list[Datastore]


class RateLimit(Answer, kw_only=True, frozen=True):
    """A limit on calls of a service that somebody else runs, for all jobs together; null: no such limit."""

    name: Annotated[str, Meta(examples=["openai"])]
    requests_per_minute: int | None = None
    """Calls that begin in any minute."""
    tokens_per_minute: int | None = None
    """Tokens that the calls which begin in any minute have together."""
    in_flight: int | None = None
    """Calls that are made at the same time."""


class RateLimitList(Answer, kw_only=True, frozen=True):
    """All limits."""

    items: list[RateLimit]


class Health(Answer, kw_only=True, frozen=True):
    """The health of the server."""

    status: OpenEnum[Literal["ok", "unavailable"]]
    checks: dict[str, str] = {}
    """The checks that were made, and what is wrong with each."""
