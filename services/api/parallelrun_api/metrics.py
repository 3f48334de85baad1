"""The metrics for Prometheus. A job's id is never a label: there may be any number of them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import prometheus_client
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from parallelrun_core.retention.report import last_report
from parallelrun_core.store.connection import RedisError
from parallelrun_core.wire.states import JobState, NodeState

if TYPE_CHECKING:
    from parallelrun_api.http.connections import Connections
    from parallelrun_api.people.quotas import Quotas
    from parallelrun_core.answers.nodes import NodeGpu
    from parallelrun_core.folder.disk_floor import DiskFloor
    from parallelrun_core.store.job_views import JobViews
    from parallelrun_core.store.nodes import NodeRegistry
    from parallelrun_core.store.registry import Registry

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_SECONDS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class ServerMetrics:
    """The measurements of one server, with what these collectors measure at every scrape."""

    def __init__(self, *collectors: Collector) -> None:
        self._registry = CollectorRegistry()
        self._requests = prometheus_client.Counter(
            "parallelrun_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "parallelrun_http_request_seconds",
            "Time to the first byte of the answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        for collector in collectors:
            self._registry.register(collector)

    def answered(self, method: str, route: str, status: int, first_byte_s: float) -> None:
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(first_byte_s)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


class _Undescribed(Collector):
    """A collector that is registered without being asked for anything, such as of Redis."""

    def describe(self) -> Iterable[Any]:
        return ()


@dataclass(eq=False)
class ClusterCollector(_Undescribed):
    """Jobs, queues, nodes and storage, measured at each scrape."""

    views: JobViews
    registry: Registry
    nodes: NodeRegistry
    root: Path
    streams: Callable[[], int]
    floor: DiskFloor

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges; without those from Redis while it is away."""
        yield _gauge("parallelrun_disk_free_bytes", "Free space at the root folder.", shutil.disk_usage(self.root).free)
        yield _gauge(
            "parallelrun_disk_floor_bytes", "Free space below which nothing is accepted.", self.floor.least(self.root)
        )
        yield from self._of_retention()
        yield _gauge("parallelrun_event_streams", "Clients that watch a job.", self.streams())
        try:
            gauges = [*self._of_jobs(), *self._of_nodes()]
            gauges.append(_gauge("parallelrun_redis_roundtrip_seconds", "A PING to Redis.", self.registry.ping()))
        except RedisError:
            gauges = []
        yield _gauge("parallelrun_redis_up", "Whether Redis answers.", int(bool(gauges)))
        yield from gauges

    def _of_retention(self) -> Iterator[GaugeMetricFamily]:
        """The last sweep; nothing before the first one."""
        report = last_report(self.root)
        if report is not None:
            yield _gauge("parallelrun_sweep_timestamp_seconds", "Time of the last sweep of retention.", report.at)
            yield _gauge("parallelrun_sweep_noticed_jobs", "Jobs that a rule will remove.", len(report.notices))
            removed = {kind: each.bytes for kind, each in report.removed.items()}
            yield _gauges("parallelrun_sweep_removed_bytes", "Bytes that the last sweep removed.", "kind", removed)
            yield _gauge("parallelrun_sweep_not_removed", "Folders that sweeps can't remove.", report.not_removed)
            is_exceeded = int(bool(report.problem))
            yield _gauge("parallelrun_retention_limit_exceeded", "Whether a limit can't be kept.", is_exceeded)

    def _of_jobs(self) -> Iterator[GaugeMetricFamily]:
        active = self.registry.active_jobs()
        census = self.views.census(active)
        waits_s: Counter[str] = Counter()
        spent_usd = 0.0
        for status in self.registry.statuses(active).values():
            waits_s.update(status.progress.waits_s)
            spent_usd += status.progress.spent_usd
        yield _gauge("parallelrun_spent_usd", "US dollars that the scripts of these jobs have reported.", spent_usd)
        if waits_s:
            yield _gauges(
                "parallelrun_limit_wait_seconds",
                "Seconds for which mini-batches of these jobs that are done have waited for permits.",
                "limit",
                waits_s,
            )
        job_states = {s.value: census.states[s] for s in JobState}
        yield _gauges("parallelrun_jobs", "Jobs that have not been put away.", "state", job_states)
        depths = {"ready": census.ready, "leased": census.leased}
        yield _gauges("parallelrun_queue_depth", "Mini-batches on Redis.", "state", depths)

    def _of_nodes(self) -> Iterator[GaugeMetricFamily]:
        nodes = self.nodes.all()
        alive = [info for info, is_alive in nodes if is_alive]
        states = Counter(info.state if is_alive else NodeState.LOST for info, is_alive in nodes)
        yield _gauges("parallelrun_agents", "Nodes.", "state", {s.value: states[s] for s in NodeState})
        busy = sum(info.busy for info in alive)
        slots = {"busy": busy, "idle": sum(info.slots for info in alive) - busy}
        yield _gauges("parallelrun_slots", "Workers that nodes can run.", "state", slots)
        yield from _of_gpus([gpu for info in alive for gpu in info.gpus])
        pressures = [info.pressure for info in alive if info.pressure is not None]
        if pressures:
            yield _gauges(
                "parallelrun_node_pressure_max",
                "The part of the last minute in which something waited for it, on the node where that is most (PSI).",
                "resource",
                {name: max(getattr(each, name) for each in pressures) for name in ("cpu", "io", "memory")},
            )


def _of_gpus(gpus: list[NodeGpu]) -> Iterator[GaugeMetricFamily]:
    """Nothing where there are none: most clusters have no use for these."""
    if gpus:
        rates = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
        used = sum(gpu.memory_used_bytes or 0 for gpu in gpus)
        total = sum(gpu.memory_bytes or 0 for gpu in gpus)
        yield _gauge("parallelrun_gpus", "GPUs, or parts of them, that workers get.", len(gpus))
        if rates:
            mean = sum(rates) / len(rates)
            yield _gauge(
                "parallelrun_gpu_utilization", "The part of the time in which they are used, in the mean.", mean
            )
        memory = {"used": used, "free": max(0, total - used)}
        yield _gauges("parallelrun_gpu_memory_bytes", "Memory of GPUs.", "state", memory)


class QuotaCollector(_Undescribed):
    """The part of their quotas that people use, of whoever uses the most."""

    def __init__(self, quotas: Quotas, nodes: NodeRegistry) -> None:
        self._quotas = quotas
        self._nodes = nodes

    def collect(self) -> Iterator[Metric]:
        """Return a gauge, 0 where nobody has a quota; none while Redis is away."""
        try:
            alive = [info for info, is_alive in self._nodes.all() if is_alive]
        except RedisError:
            return
        slots = Counter[str]()
        for info in alive:
            slots.update(info.owners)
        sizes = self._quotas.sizes()
        shares = {"slots": 0.0, "job_bytes": 0.0}
        for owner in {*slots, *sizes}:
            quota = self._quotas.of(owner)
            for resource, used, most in (
                ("slots", slots[owner], quota.slots),
                ("job_bytes", sizes.get(owner, 0), quota.job_bytes),
            ):
                if most:
                    shares[resource] = max(shares[resource], used / most)
        text = "The part of a quota that is used, of the person who uses the most."
        yield _gauges("parallelrun_quota_used_ratio_max", text, "resource", shares)


class ConnectionCollector(_Undescribed):
    """The connections of one server, and those that it has ended, by reason."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def collect(self) -> Iterator[Metric]:
        """Return how many there are, and how many were ended."""
        yield _gauge("parallelrun_http_connections", "Open connections.", len(self._connections))
        ended = CounterMetricFamily(
            "parallelrun_http_connections_ended", "Connections that were too slow or too many.", labels=["reason"]
        )
        for reason, count in list(self._connections.ended.items()):
            ended.add_metric([reason], count)
        yield ended


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
