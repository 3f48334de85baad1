"""A cluster that is only computed, for what doesn't fit on one machine: nodes of different speed, CPUs that processes
share, a quota, storage of limited speed.

It knows nothing of the adviser's replay. Time goes by from event to event; meanwhile each mini-batch advances in its
phase (loading, computing, waiting) at the rate that its node and the storage allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from parallelrun_core.adviser.evidence import DONE, Evidence, Init, MeasuredSettings, NodeUse, columns

FIXED_S = 0.004
_GB = 1 << 30


@dataclass(frozen=True)
class Work:
    """One mini-batch."""

    cpu_s: float
    """On one thread."""
    read_mb: float = 0.0
    wait_s: float = 0.0
    items: int = 1
    peak_gb: float = 0.2


@dataclass(frozen=True)
class Site:
    """A cluster, and what a job is run with there."""

    nodes: int = 4
    cpus: float = 4.0
    processes: int = 4
    slow: dict[int, float] = field(default_factory=dict)
    """How many times slower some nodes compute."""
    quota: float | None = None
    """CPUs that a node's workers may use."""
    storage_mb_s: float = 1e9
    """Of all nodes together."""
    threads: int = 1
    memory_gb: float = 16.0
    listing_s: float = 0.2
    environment_s: float = 0.0
    init_s: float = 2.0
    after_s: float = 1.0


@dataclass
class _Running:
    mini_batch: int
    lane: int
    started_s: float
    left: list[float]
    """Of loading (MB), computing (CPU seconds), waiting (seconds)."""
    loaded_s: float = 0.0

    @property
    def phase(self) -> int:
        return next((phase for phase, left in enumerate(self.left) if left > 1e-9), 3)


def run(site: Site, work: Sequence[Work], settings: MeasuredSettings) -> Evidence:
    """How the job goes there."""
    return _Run(site, work, settings).evidence()


class _Run:
    def __init__(self, site: Site, work: Sequence[Work], settings: MeasuredSettings) -> None:
        self._site, self._work, self._settings = site, work, settings
        self._lanes = [(node, f"process{each:03d}") for node in range(site.nodes) for each in range(site.processes)]
        self._next = 0
        self._tries: dict[str, list[float]] = {
            name: [] for name in ("mini_batch", "node", "process", "items", "started_s", "elapsed_s", "run_s", "load_s",
                                  "cpu_s", "peak_bytes", "read_bytes")
        }  # fmt: skip
        self._throttled = [0.0] * site.nodes
        self._waited = [0.0] * site.nodes

    def evidence(self) -> Evidence:
        site = self._site
        ready_s = site.listing_s + site.environment_s + site.init_s
        end = self._play(ready_s)
        names = [f"node{node:03d}" for node in range(site.nodes)]
        total = end + site.after_s
        uses = {
            name: NodeUse(
                cpus=site.quota or site.cpus, memory_bytes=site.memory_gb * _GB, threads=float(site.threads),
                throttled=self._throttled[node] / total, cpu_pressure=min(1.0, self._waited[node] / total),
            )
            for node, name in enumerate(names)
        }  # fmt: skip
        begun = site.listing_s + site.environment_s
        return Evidence(
            job_id="job_01kav3x8n2h7q5m9c4t6",
            tries=columns(**self._tries, status=[DONE] * len(self._work)),
            nodes=names,
            processes=[f"{names[node]}/{process}" for node, process in self._lanes],
            seconds=total,
            inits=[Init(names[node], process, begun, site.init_s) for node, process in self._lanes],
            first_listed_s=site.listing_s,
            environment_s=site.environment_s,
            uses=uses,
            settings=self._settings,
        )

    def _play(self, now: float) -> float:
        running = [each for lane in range(len(self._lanes)) for each in self._begin(lane, now)]
        end = now
        while running:
            rates = self._rates(running)
            step = min(each.left[each.phase] / rate for each, rate in zip(running, rates, strict=True))
            now += step
            for each, rate in zip(list(running), rates, strict=True):
                if each.phase == 0:
                    each.loaded_s += step
                each.left[each.phase] -= step * rate
                if each.phase == 3:
                    running.remove(each)
                    self._note(each, now)
                    end = now
                    running += self._begin(each.lane, now + FIXED_S)
        return end

    def _begin(self, lane: int, now: float) -> Iterator[_Running]:
        if self._next < len(self._work):
            work = self._work[self._next]
            # What passes until it has begun is waiting, too, but not of the try.
            yield _Running(self._next, lane, now, [work.read_mb, work.cpu_s, work.wait_s + 1e-6])
            self._next += 1

    def _rates(self, running: Sequence[_Running]) -> list[float]:
        """How fast each advances in its phase."""
        site = self._site
        loading = sum(each.phase == 0 for each in running) or 1
        computing = [0] * site.nodes
        for each in running:
            if each.phase == 1:
                computing[self._lanes[each.lane][0]] += 1
        rates = []
        for each in running:
            node = self._lanes[each.lane][0]
            if each.phase == 0:
                rates.append(site.storage_mb_s / loading)
            elif each.phase == 1:
                rates.append(self._cpu_rate(computing[node]) / site.slow.get(node, 1.0))
            else:
                rates.append(1.0)
        return rates

    def _cpu_rate(self, processes: int) -> float:
        """CPU seconds of useful work for each second of a process. Threads beyond the CPUs only wait for each other."""
        site = self._site
        cpus = min(site.cpus, site.quota or site.cpus)
        wanted = processes * site.threads
        useful = min(1.0, cpus / wanted) * site.threads
        return useful if wanted <= cpus else useful * cpus / wanted if site.threads > 1 else useful

    def _note(self, each: _Running, now: float) -> None:
        work, (node, _) = self._work[each.mini_batch], self._lanes[each.lane]
        elapsed = now - each.started_s
        run_s = elapsed - each.loaded_s
        site = self._site
        computed = max(0.0, run_s - work.wait_s)
        cpus = min(site.cpus, site.quota or site.cpus)
        spun = computed * min(site.threads, cpus / site.processes) if site.threads > 1 else work.cpu_s
        if site.quota:
            self._throttled[node] += max(0.0, computed - work.cpu_s)
        elif site.processes * site.threads > site.cpus:
            self._waited[node] += computed / site.processes
        values = (each.mini_batch, node, each.lane, work.items, each.started_s, elapsed, run_s, each.loaded_s, spun,
                  work.peak_gb * _GB, work.read_mb * 1e6)  # fmt: skip
        for name, value in zip(self._tries, values, strict=True):
            self._tries[name].append(value)
