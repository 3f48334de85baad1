"""Snapshot for one screen of a job, fetched with a few requests, each of which answers whatever the job's size is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from parallelrun.errors import Conflict, ConnectionFailed, InvalidRequest, NotFound, Unavailable
from parallelrun.models import Job, Node
from parallelrun_core.answers.pictures import KindsOfErrors, Throughput, Timeline

if TYPE_CHECKING:
    from parallelrun.client import Client

Answer = TypeVar("Answer")

WINDOW_S: Final = 60.0
_LANES: Final = 100
_POINTS: Final = 60
_STRIP: Final = 30


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    job: Job
    nodes: list[Node] = []
    """Nodes that work for it."""
    throughput: Throughput = msgspec.field(default_factory=Throughput)
    workers: Timeline = msgspec.field(default_factory=Timeline)
    """The last minute of each."""
    errors: KindsOfErrors = msgspec.field(default_factory=KindsOfErrors)


def take(client: Client, job: Job) -> Snapshot:
    """Return what is known now about a job; without what a server of an earlier release doesn't say."""
    nodes = [node for node in client.nodes.list() if job.id in node.jobs]
    if job.is_pipeline:
        return Snapshot(job=job, nodes=nodes)
    pictures = client.pictures
    throughput = _if_known(lambda: pictures.throughput(job.id, points=_POINTS), Throughput())
    length_s = throughput.bucket_s * len(throughput.mini_batches)
    begin_s = max(0.0, length_s - WINDOW_S)
    return Snapshot(
        job=job,
        nodes=nodes,
        throughput=throughput,
        workers=_if_known(
            lambda: pictures.timeline(job.id, begin_s=begin_s, end_s=begin_s + WINDOW_S, buckets=_STRIP, lanes=_LANES),
            Timeline(),
        ),
        errors=_if_known(lambda: pictures.errors(job.id), KindsOfErrors()),
    )


def take_patiently(client: Client, job: Job, before: Snapshot) -> Snapshot:
    """Return a snapshot while a server comes and goes: what was known before, with the job as it is now."""
    try:
        return take(client, job)
    except (ConnectionFailed, Unavailable):
        return msgspec.structs.replace(before, job=job)


def _if_known(ask: Callable[[], Answer], otherwise: Answer) -> Answer:
    try:
        return ask()
    except (NotFound, Conflict, InvalidRequest):
        return otherwise
