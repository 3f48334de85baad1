"""Definitions that users make once, for many jobs: assets, datastores, schedules and batch endpoints."""

from __future__ import annotations

from typing import Any

import msgspec


class Datastore(msgspec.Struct, kw_only=True, frozen=True):
    """A named place in an object store."""

    name: str
    type: str
    """s3, gcs, azure_blob or azure_data_lake_gen2."""
    location: str = ""
    """The URL that paths in it begin from."""
    access: str = ""
    """The source of credentials: `node`, `secret` (a file in the nodes' folders of secrets), or `anonymous`."""
    definition: dict[str, Any] = {}
    """The fields as they were defined; there is no secret in them."""


class RateLimit(msgspec.Struct, kw_only=True, frozen=True):
    """A limit on calls of a service that somebody else runs, for all jobs together; None: no such limit."""

    name: str
    requests_per_minute: int | None = None
    """Calls that begin in any minute."""
    tokens_per_minute: int | None = None
    """Tokens that the calls which begin in any minute have together."""
    in_flight: int | None = None
    """Calls that are made at the same time."""


class Asset(msgspec.Struct, kw_only=True, frozen=True):
    """A version of an asset."""

    type: str
    """data, model, environment, component or code."""
    name: str
    version: str
    owner: str = ""
    """The person who made it; empty: whoever runs the server."""
    id: str = ""
    """The name by which a job's document refers to it: `azureml:NAME:VERSION`."""
    created: str | None = None
    description: str = ""
    tags: dict[str, str] = {}
    properties: dict[str, str] = {}
    archived: bool = False
    """Hidden from lists and from `latest`."""
    content: dict[str, Any] = {}
    """The content, which never changes. `path`, if there is one, is where its files are."""

    @property
    def path(self) -> str:
        """Return where its files are; empty if it has none."""
        return str(self.content.get("path", ""))


class Fire(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of a time at which a schedule was due."""

    due: str
    """RFC 3339, UTC; so are the other times."""
    outcome: str
    """started; skipped, since an earlier job had not ended; missed, since it was too late; manual: somebody asked."""
    at: str = ""
    """Time when that was decided."""
    job_id: str | None = None
    """The job that was made."""
    passed_over: int = 0
    """Times before it for which nothing was done, up to 1,000."""
    why: str = ""
    """Why no job was made."""


class Schedule(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule as it was when the server answered."""

    name: str
    owner: str = ""
    """The person whose it is, and whose its jobs are; empty: whoever runs the server."""
    enabled: bool = True
    trigger: dict[str, Any] = {}
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    missed_runs: str = "once"
    allow_overlap: bool = False
    created: str | None = None
    modified: str | None = None
    revision: int = 0
    """Grows whenever it is defined, enabled or disabled."""
    next: list[str] = []
    """Time when it is due next, up to five times; none while it is disabled, or when it has ended."""
    last: Fire | None = None
    """The outcome of the last time."""
    job: dict[str, Any] = {}
    """The job that it makes: `name`, `type`, `notes`, `spec`."""


class BatchEndpoint(msgspec.Struct, kw_only=True, frozen=True):
    """A batch endpoint as it was when the server answered."""

    name: str
    owner: str = ""
    """The person whose it is; empty: whoever runs the server."""
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = {}
    default_deployment: str = ""
    """The deployment that is invoked when a request names none; empty: it must name one."""
    deployments: list[str] = []
    created: str | None = None
    modified: str | None = None


class BatchDeployment(msgspec.Struct, kw_only=True, frozen=True):
    """A deployment of a batch endpoint as it was when the server answered."""

    name: str
    endpoint: str = ""
    type: str = "model"
    """model or pipeline."""
    description: str = ""
    tags: dict[str, str] = {}
    inputs: dict[str, dict[str, Any]] = {}
    """The inputs of a pipeline that an invocation gives: `type`, and `default` if there is one. A model takes any data.
    """
    created: str | None = None
    modified: str | None = None
    notes: list[str] = []
    spec: dict[str, Any] = {}
    """Its job, with placeholders for what an invocation gives."""
