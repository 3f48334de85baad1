"""The context of the routes: created once per server, passed to each request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, cast

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request

from parallelrun_api.assets.service import AssetService
from parallelrun_api.computes import ComputeService
from parallelrun_api.datastores import DatastoreService
from parallelrun_api.definitions import DefinitionService
from parallelrun_api.endpoints.service import EndpointService
from parallelrun_api.http.concurrency import ConcurrencyLimiter
from parallelrun_api.http.connections import ConnectionLimits, Connections, most_connections
from parallelrun_api.http.errors import TooManyStreams
from parallelrun_api.http.named_tokens import Operators
from parallelrun_api.metrics import ClusterCollector, ConnectionCollector, QuotaCollector, ServerMetrics
from parallelrun_api.people.access import Access, Subject, subject_of
from parallelrun_api.people.person import CURRENT
from parallelrun_api.people.quotas import Quotas
from parallelrun_api.schedules.service import ScheduleService
from parallelrun_api.settings import ApiSettings
from parallelrun_api.submission.checks import PathChecks
from parallelrun_api.submission.controlling import Cancels, Controls
from parallelrun_api.submission.idempotency import KeyLocks
from parallelrun_api.submission.registrar import Registrar
from parallelrun_api.submission.removing import Removals
from parallelrun_api.submission.reopening import Reopenings
from parallelrun_api.submission.submissions import Submissions
from parallelrun_api.tries.histories import Histories
from parallelrun_api.views.feeds import WAIT_S, Feeds
from parallelrun_api.views.folder_names import FolderNames
from parallelrun_api.views.job_search import JobSearch
from parallelrun_api.views.jobs import JobReader
from parallelrun_api.waiting.situation import SituationReader
from parallelrun_api.waiting.waits import Waits
from parallelrun_core.answers.jobs import Job
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.folder.disk_floor import DiskFloor
from parallelrun_core.limits.definition import Limit, limit_catalog, read_limit
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.store.connection import Redis, connect
from parallelrun_core.store.event_stream import EventStreams
from parallelrun_core.store.job_views import JobViews
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.store.provisioning import Provisioning
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.usage import UsageStore
from parallelrun_core.wire.states import TERMINAL


@dataclass(frozen=True, kw_only=True)
class Context:
    """A server's parts."""

    settings: ApiSettings
    redis: Redis
    registry: Registry
    job_views: JobViews
    nodes: NodeRegistry
    jobs: JobReader
    job_search: JobSearch
    feeds: Feeds
    submissions: Submissions
    cancels: Cancels
    reopenings: Reopenings
    removals: Removals
    registrar: Registrar
    computes: ComputeService
    datastores: DatastoreService
    limits: DefinitionService[Limit]
    assets: AssetService
    schedules: ScheduleService
    endpoints: EndpointService
    metrics: ServerMetrics
    connections: Connections
    operators: Operators
    access: Access
    usage: UsageStore
    quotas: Quotas
    waits: Waits
    controls: Controls
    folder_names: FolderNames = field(default_factory=FolderNames)
    long_lists: ConcurrencyLimiter = field(default_factory=partial(ConcurrencyLimiter, at_once=2, waiting=8))
    """Lists of what may be any number of files or mini-batches."""
    pictures: ConcurrencyLimiter = field(default_factory=partial(ConcurrencyLimiter, at_once=2, waiting=30))
    """The limit on pictures that are computed from the tries of a job, and on searches in its logs."""
    job_lists: ConcurrencyLimiter = field(default_factory=partial(ConcurrencyLimiter, at_once=4, waiting=32))
    scrapes: ConcurrencyLimiter = field(default_factory=partial(ConcurrencyLimiter, at_once=1, waiting=1))
    """Metrics; those who wait share one answer."""
    probes: ConcurrencyLimiter = field(default_factory=partial(ConcurrencyLimiter, at_once=1, waiting=1))
    """The limit on probes of the storage; those who wait share one answer."""
    previews: ConcurrencyLimiter = field(default_factory=partial(ConcurrencyLimiter, at_once=2, waiting=8))
    """The limit on previews of data; each takes processes of its own."""
    file_reads: CapacityLimiter = field(default_factory=partial(CapacityLimiter, 16))
    """The threads that read what is downloaded."""
    histories: Histories = field(default_factory=Histories)
    advice: LruCache[str] = field(default_factory=partial(LruCache, 200))
    """Advice on jobs that have ended, which stays what it is."""
    heartbeat_s: float = 15.0
    """After so long without an event, a stream shows that it is alive."""
    key_locks: KeyLocks = field(default_factory=KeyLocks)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the server has been asked to stop: streams end then."""

    def stop(self) -> None:
        """Let all streams end."""
        self.stopping.set()
        self.feeds.stop()

    def with_waiting(self, job: Job) -> Job:
        """Return a job with what it waits for, in words for the person of this request."""
        waiting = None if job.state in TERMINAL else self.waits.of(self.jobs.folder(job.id), CURRENT.get())
        return job if waiting is None else msgspec.structs.replace(job, waiting=waiting)

    def check_streams(self) -> None:
        """Make sure that one more client may watch.

        Raises:
            TooManyStreams: too many do already.
        """
        most = min(self.settings.max_streams, self.connections.limits.most * 3 // 4)
        if self.feeds.watchers >= most:
            raise TooManyStreams(f"{most:,} clients are watching already.")

    async def close(self) -> None:
        await self.feeds.close()
        self.redis.close()


def build_context(settings: ApiSettings) -> Context:
    """Put a server together; nothing is connected or written yet."""
    client = connect(settings.redis_login)
    datastore_registry.configure(settings.root)  # it checks what they stand for, without credentials
    registry = Registry(client)
    nodes = NodeRegistry(client)
    job_views = JobViews(client)
    floor = DiskFloor(settings.disk_floor_bytes)
    jobs = JobReader(settings.root, registry, floor)
    access = Access(settings.root)
    checks = PathChecks(root=settings.root, places=settings.places)
    catalog = ComputeCatalog(settings.root, settings.sealing_key)
    quotas = Quotas(settings.root, registry, client, settings.sealing_key)
    submissions = Submissions(settings.root, catalog, checks, client, floor, quotas=quotas)
    assets = AssetService(settings.root, settings.places, lambda: settings.site, check_seen=access.check_job_seen)
    feeds = Feeds(EventStreams(settings.redis_login, wait_s=WAIT_S), jobs.has_ended)
    connections = Connections(_connection_limits(settings))
    waits = _waits(settings, client, registry, views=job_views, nodes=nodes, floor=floor, access=access, quotas=quotas)
    return Context(
        settings=settings,
        redis=client,
        registry=registry,
        job_views=job_views,
        nodes=nodes,
        jobs=jobs,
        job_search=JobSearch(jobs),
        feeds=feeds,
        submissions=submissions,
        cancels=Cancels(settings.root, client),
        reopenings=Reopenings(settings.root, client, quotas),
        removals=Removals(settings.root, registry),
        registrar=Registrar(submissions, jobs, registry),
        computes=ComputeService(settings.root, catalog, registry, Provisioning(client)),
        datastores=DatastoreService(settings.root, settings.places, registry),
        limits=DefinitionService("limit", limit_catalog(settings.root), read_limit),
        assets=assets,
        schedules=ScheduleService(settings.root, submissions, checks, registry, names=assets.names),
        endpoints=EndpointService(settings.root, submissions, checks, names=assets.names),
        metrics=ServerMetrics(
            ClusterCollector(job_views, registry, nodes, settings.root, lambda: feeds.watchers, floor=floor),
            ConnectionCollector(connections),
            QuotaCollector(quotas, nodes),
        ),
        connections=connections,
        operators=Operators(settings.operator_names),
        access=access,
        usage=UsageStore(client),
        quotas=quotas,
        waits=waits,
        controls=Controls(settings.root, registry),
    )


def _connection_limits(settings: ApiSettings) -> ConnectionLimits:
    return ConnectionLimits(
        most=most_connections(settings.max_connections), head_s=settings.head_seconds, stall_s=settings.stall_seconds
    )


def _waits(
    settings: ApiSettings,
    client: Redis,
    registry: Registry,
    *,
    views: JobViews,
    nodes: NodeRegistry,
    floor: DiskFloor,
    access: Access,
    quotas: Quotas,
) -> Waits:
    reader = SituationReader(
        root=settings.root,
        redis=client,
        registry=registry,
        views=views,
        nodes=nodes,
        floor=floor,
        owner_of=lambda job_id: access.owner_of(Subject("job", job_id)),
        slot_limits_of=lambda owner: ((quota := quotas.of(owner)).slots, quota.nodes),
    )
    return Waits(reader)


def context_of(request: Request) -> Context:
    return cast(Context, request.app.state.context)


async def _context_of(request: Request) -> Context:  # a plain function would be called in another thread
    return context_of(request)


Ctx = Annotated[Context, Depends(_context_of)]


def access_check(
    *, is_read: bool = False, makes_own: bool = False, serves_deleted: bool = False
) -> Callable[..., Awaitable[None]]:
    """Return what makes sure that the person of a request may make it, and that the job it is about was not deleted.

    Args:
        is_read: its route changes nothing, though the method is another one than GET.
        makes_own: its route makes something of one's own out of what the request is about, which stays as it is.
        serves_deleted: its route also serves a job that was deleted, of which all others say that it is not there.
    """

    async def check(request: Request, context: Ctx) -> None:
        """Raises NotAllowed: they may not; NotFound: it is somebody else's, and people see only their own; or it was
        deleted."""
        subject = subject_of(request.path_params)
        await context.access.check(request.method, subject, is_read=is_read, makes_own=makes_own)
        if subject is not None and subject.noun == "job" and not serves_deleted:
            await run_sync(context.access.check_job_kept, subject.name)

    return check
