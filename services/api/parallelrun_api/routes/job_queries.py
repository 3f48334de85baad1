"""The query parameters that choose among jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import BeforeValidator

from parallelrun_api.people.person import CURRENT
from parallelrun_api.views.job_search import JobQuery, Order
from parallelrun_api.views.jobs import JobFilter
from parallelrun_core.names.patterns import JOB, MAKER
from parallelrun_core.wire.states import JobState


def _written_as_a_time(value: object) -> object:
    if isinstance(value, str) and not any(each in value for each in "-:"):
        raise ValueError("must be a time as in RFC 3339: 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_written_as_a_time)]
"""A time in a query, which pydantic would also take as a number of seconds."""
Status = Annotated[JobState | None, Query(description="Only jobs in this state.")]
Parent = Annotated[str, Query(description="Only the steps of this pipeline.", pattern=f"{JOB}|^$")]
Steps = Annotated[bool, Query(description="Also jobs that are steps of pipelines.")]
Owner = Annotated[str | None, Query(description="Only jobs of this person; empty: of whoever runs the server.")]
Archived = Annotated[bool, Query(description="Also jobs that are archived.")]


def job_filter_of(
    *, status: Status = None, parent: Parent = "", steps: Steps = False, owner: Owner = None, archived: Archived = False
) -> JobFilter:
    """Return the jobs that a request lists: of those that its person may see."""
    return JobFilter(state=status, parent=parent, has_steps=steps, owner=_visible_owner(owner), has_archived=archived)


def job_query(
    *,
    q: Annotated[
        str,
        Query(
            description="Words, all of which are in the name, id, type, tags, script, compute, owner or maker.",
            max_length=500,
        ),
    ] = "",
    status: Status = None,
    tag: Annotated[str, Query(description="Only jobs with this tag: `name` or `name=value`.", max_length=500)] = "",
    compute: Annotated[str, Query(description="Only jobs on this compute.", max_length=200)] = "",
    asset: Annotated[
        str, Query(description="Only jobs that use this version of an asset: `azureml:NAME:VERSION`.", max_length=1024)
    ] = "",
    maker: Annotated[
        str,
        Query(
            description="Only jobs made by a `schedule`, `endpoint` or `pipeline`, or by one, as `schedule:nightly`.",
            pattern=f"{MAKER}|^$",
        ),
    ] = "",
    owner: Owner = None,
    since: Annotated[Moment | None, Query(description="Only jobs submitted at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Only jobs submitted at this time or earlier.")] = None,
    parent: Parent = "",
    steps: Steps = False,
    archived: Archived = False,
    order_by: Annotated[Order, Query(description="The column to sort by; the largest or latest first.")] = "submitted",
    ascending: Annotated[bool, Query(description="The smallest or earliest first.")] = False,
) -> JobQuery:
    """Return the jobs that a request looks for, and their order: of those that its person may see."""
    return JobQuery(
        text=q, state=status, tag=tag, compute=compute, asset=asset, maker=maker, owner=_visible_owner(owner),
        since=_epoch(since, float("-inf")), until=_epoch(until, float("inf")), parent=parent, has_steps=steps,
        has_archived=archived, order=order_by, is_ascending=ascending,
    )  # fmt: skip


def _visible_owner(owner: str | None) -> str | None:
    only = CURRENT.get().only_owner
    return owner if only is None else only


def _epoch(time: datetime | None, otherwise: float) -> float:
    if time is None:
        return otherwise
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
