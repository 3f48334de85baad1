"""Cases on the simulated cluster: each with what is wrong, and what mends it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from benchmarks.adviser.cases import Case, Went
from benchmarks.adviser.simulated import Site, Work, run
from parallelrun_core.adviser.advice import AdviceFinding, Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.evidence import MeasuredSettings
from parallelrun_core.adviser.what_if import curve_of

USUAL = Site()
ONE = MeasuredSettings(size=1)
KEYS = MeasuredSettings(unit="", has_keys=True)


@dataclass(frozen=True)
class Planted:
    """A job on a site, and the same one mended."""

    name: str
    finding: str
    work: Sequence[Work]
    site: Site = USUAL
    mended_work: Sequence[Work] | None = None
    mended_site: Site = USUAL
    settings: MeasuredSettings = ONE
    is_about_time: bool = True
    sets: dict[Literal["nodes", "processes"], str] = field(default_factory=dict)
    """Which field of the site the finding changes, and the setting that says to what."""

    def case(self) -> Case:
        return Case(
            self.name, self.finding, lambda: went(self.site, self.work, self.settings), self._mended, self.is_about_time
        )

    def _mended(self, finding: AdviceFinding) -> Went:
        site = self.mended_site
        for name, setting in self.sets.items():
            count = int(finding.change.set[setting])
            site = replace(site, nodes=count) if name == "nodes" else replace(site, processes=count)
        return went(site, self.work if self.mended_work is None else self.mended_work, self.settings)


def went(site: Site, work: Sequence[Work], settings: MeasuredSettings = ONE) -> Went:
    """How a job goes there, and what is said about it."""
    evidence = run(site, work, settings)
    return Went(evidence.seconds, advise(evidence, Thresholds()))


def error_of_nodes(counts: Sequence[int] = (1, 2, 4, 8, 16, 32), mini_batches: int = 400) -> float:
    """The worst error of what is computed for other numbers of nodes, as a share of the time that it takes there."""
    chance = random.Random(8)
    work = [Work(chance.lognormvariate(2.0, 0.6), wait_s=1.0) for _ in range(mini_batches)]
    gone = {count: run(replace(USUAL, nodes=count), work, ONE) for count in counts}
    return max(
        abs(point.seconds - gone[point.value].seconds) / gone[point.value].seconds
        for evidence in gone.values()
        for point in curve_of(evidence, "nodes", counts).points
    )


def planted() -> list[Planted]:
    """All of them. Healthy jobs use a CPU for about 0.8 of the time and end within a few percent of the lower bound."""
    chance = random.Random(6)

    def even(count: int, *, wait_s: float = 2.5, read_mb: float = 0, peak_gb: float = 0.2) -> list[Work]:
        cpu = [20.0 * chance.uniform(0.8, 1.2) for _ in range(count)]
        return [Work(cpu_s, wait_s=wait_s, read_mb=read_mb, peak_gb=peak_gb) for cpu_s in cpu]

    usual = even(320)
    giants = list(usual)
    giants[280] = Work(900.0)
    divided = [*usual[:280], *even(45), *usual[281:]]
    return [
        Planted("slow node", "slow_node", usual, Site(slow={2: 3.0})),
        Planted(
            "too many nodes", "too_many_nodes", usual[:40], Site(nodes=16, init_s=20),
            sets={"nodes": "instance_count"}, mended_site=Site(init_s=20),
        ),
        Planted("giant item among nodes", "giant_item", giants, mended_work=divided),
        Planted("a key with most of the rows", "skewed_keys", giants, mended_work=divided, settings=KEYS),
        Planted(
            "slow storage", "reading", even(320, read_mb=500), Site(storage_mb_s=200),
            mended_site=Site(storage_mb_s=20_000), mended_work=usual,
        ),
        Planted("CPU quota", "cpu_quota", usual, Site(quota=1.5), mended_site=Site()),
        Planted(
            "threads of OpenMP", "oversubscribed", even(320, wait_s=0), Site(threads=4), mended_site=Site(threads=1)
        ),
        Planted("building an environment", "environment_build", usual, Site(environment_s=400)),
        Planted("listing", "slow_listing", usual, Site(listing_s=300)),
        Planted("init() among nodes", "slow_init", usual, Site(init_s=400)),
        Planted(
            "too little memory", "memory", even(320, peak_gb=3.9), is_about_time=False,
            sets={"processes": "max_concurrency_per_instance"},
        ),
        Planted(
            "idle CPUs", "too_few_processes", usual, Site(processes=1),
            sets={"processes": "max_concurrency_per_instance"},
        ),
    ]  # fmt: skip
