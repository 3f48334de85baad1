"""Everything that a report shows, fetched from a server; bounded, however large the job is."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from parallelrun.errors import ApiError
from parallelrun.models import Job
from parallelrun_core.answers.pictures import EffectiveSettings, Figures, KindsOfErrors, Throughput, Tiles, Timeline

if TYPE_CHECKING:
    from parallelrun.client import Client
    from parallelrun_core.adviser.advice import Advice

Answer = TypeVar("Answer")

_CELLS: Final = 600
_POINTS: Final = 200
_FEWEST_POINTS: Final = 20
_POINTS_PER_S: Final = 8
_MOMENTS: Final = 180
_LANES: Final = 40
_NODES: Final = 12
_ROWS: Final = 5000
_POINTS_OF_NODE: Final = 120
_USAGE: Final = ("Cpu Percent", "Memory Used Percent")


@dataclass(frozen=True, kw_only=True)
class NodeUsageSeries:
    """Use of a node, in percent, from its first measurement to its last."""

    node: str
    begin: str
    end: str
    cpu: list[float]
    memory: list[float]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts of a report. What the server doesn't know is empty."""

    job: Job
    server: str
    created: datetime
    figures: Figures = field(default_factory=Figures)
    tiles: Tiles = field(default_factory=Tiles)
    throughput: Throughput = field(default_factory=Throughput)
    timeline: Timeline = field(default_factory=Timeline)
    errors: KindsOfErrors = field(default_factory=KindsOfErrors)
    settings: EffectiveSettings = field(default_factory=EffectiveSettings)
    advice: Advice | None = None
    usage: tuple[NodeUsageSeries, ...] = ()


def gather(client: Client, job_id: str) -> Facts:
    """Return what is known now about a job."""
    job = client.jobs.get(job_id)
    created = datetime.now(UTC)
    if job.is_pipeline:
        return Facts(job=job, server=client.url, created=created)
    pictures = client.pictures
    figures = _or(Figures(), lambda: pictures.figures(job_id))
    # So that what one bucket has is not that of a single try.
    points = min(_POINTS, max(_FEWEST_POINTS, round((figures.took_s or 0) * _POINTS_PER_S)))
    return Facts(
        job=job,
        server=client.url,
        created=created,
        figures=figures,
        tiles=_or(Tiles(), lambda: pictures.tiles(job_id, buckets=_CELLS)),
        throughput=_or(Throughput(), lambda: pictures.throughput(job_id, points=points)),
        timeline=_or(Timeline(), lambda: pictures.timeline(job_id, buckets=_MOMENTS, lanes=_LANES)),
        errors=_or(KindsOfErrors(), lambda: pictures.errors(job_id)),
        settings=_or(EffectiveSettings(), lambda: pictures.settings(job_id)),
        advice=_or(None, lambda: client.jobs.advice(job_id)),
        usage=_or((), lambda: tuple(_usages(client, job_id))),
    )


def _or(otherwise: Answer, ask: Callable[[], Answer]) -> Answer:
    """The answer; where the server has none, as one of an earlier release, what stands for that."""
    with suppress(ApiError):
        return ask()
    return otherwise


def _usages(client: Client, job_id: str) -> Iterator[NodeUsageSeries]:
    """Return what the first nodes have measured of themselves."""
    prefix, name = "sys/perf/", "/node_resource_usage.csv"
    paths = [log.path for log in client.logs.list(job_id) if log.path.startswith(prefix) and log.path.endswith(name)]
    for path in sorted(paths)[:_NODES]:
        # Its titles are in the first line, which the last ones don't have.
        text = b"".join(client.logs.read(job_id, path)).decode("utf-8", "replace")
        rows = list(csv.DictReader(text.splitlines()[: _ROWS + 1]))
        cpu, memory = ([_float(row.get(title)) for row in rows] for title in _USAGE)
        if rows:
            begin, end = (str(row.get("Utc Time", "")) for row in (rows[0], rows[-1]))
            yield NodeUsageSeries(
                node=path[len(prefix) : -len(name)],
                begin=begin,
                end=end,
                cpu=thinned(cpu, _POINTS_OF_NODE),
                memory=thinned(memory, _POINTS_OF_NODE),
            )


def thinned(values: list[float], most: int) -> list[float]:
    """Return as many values at most, each the highest of those that it stands for."""
    step = -(-len(values) // most)
    return [max(values[at : at + step]) for at in range(0, len(values), step)] if values else []


def _float(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
