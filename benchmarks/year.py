"""A year of a cluster that runs a job a minute, below a limit on the bytes of its jobs.

The year is played with the policy of retention itself, over a model of the folder: jobs of very different sizes, those
that others resume from or read, pipelines that reuse earlier steps, assets in outputs of jobs, and jobs that users
delete. `peak_to_limit` is the most that all folders had together, and `broken_references` how often something was
removed that a job, a pipeline or an asset still needed. Then one sweep is made for real over thousands of job folders.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import Size
from benchmarks.measure import Figures
from parallelrun_core.documents.schema import encode
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.ids import job_id_at
from parallelrun_core.layout import Layout, jobs_of, retention_of
from parallelrun_core.retention.policy import DAY_S, JobFacts, plan_jobs
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sweep import Sweeper
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

_START: Final = 1_790_000_000.0
_MINUTE_S: Final = 60.0
_MEAN_BYTES: Final = 3_000_000
_DAYS_KEPT: Final = 16
"""Days of jobs that fit below the limit, twice the notice and some more."""
_SEED: Final = 11
_YEAR: Final[dict[Size, tuple[int, int]]] = {"tiny": (15_000, 720), "quick": (525_600, 720), "full": (525_600, 60)}
"""Number of jobs, and minutes between two sweeps."""
_FOLDERS: Final[dict[Size, int]] = {"tiny": 50, "quick": 5_000, "full": 5_000}


@dataclass
class _Cluster:
    """The model of a root folder."""

    rules: Rules
    draw: random.Random = field(default_factory=lambda: random.Random(_SEED))
    facts: dict[str, JobFacts] = field(default_factory=dict)
    running: list[tuple[float, str]] = field(default_factory=list)
    """Jobs that have not ended, each with the time when it will."""
    assets: dict[str, str] = field(default_factory=dict)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=2000))
    bytes: int = 0
    peak: int = 0
    removed: int = 0
    broken: int = 0

    def submit(self, number: int, now: float) -> None:
        """Add a job, sometimes one that needs an earlier one."""
        job_id, kind = job_id_at(now, str(number)), self.draw.random()
        names = self._earlier() if kind < 0.04 else ()
        size = int(self.draw.lognormvariate(0.0, 1.0) * _MEAN_BYTES / 1.65)
        self.facts[job_id] = JobFacts(job_id=job_id, unit=job_id, submitted=now, ended=0.0, bytes=size, names=names)
        self.running.append((now + self.draw.expovariate(1 / 1800), job_id))
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        self.recent.append(job_id)
        if kind > 0.999:
            self.assets[f"asset-{self.draw.randrange(20)}"] = job_id

    def _earlier(self) -> tuple[str, ...]:
        """Return one of the recent jobs that are still there, by chance."""
        earlier = [name for name in self.recent if name in self.facts and not self.facts[name].deleted]
        return (self.draw.choice(earlier),) if earlier else ()

    def end_jobs(self, now: float) -> None:
        """End the jobs whose time has come; a third of those that need others were pipelines, which need them still."""
        for ends, job_id in [each for each in self.running if each[0] <= now]:
            job = self.facts[job_id]
            names = job.names if self.draw.random() < 1 / 3 else ()
            deleted = ends if self.draw.random() < 0.02 and not self._needs(job_id) else 0.0
            self.facts[job_id] = msgspec.structs.replace(
                job, ended=ends, is_completed=True, names=names, deleted=deleted
            )
        self.running = [each for each in self.running if each[0] > now]

    def _needs(self, job_id: str) -> bool:
        """Return whether anything needs a job."""
        return job_id in self.assets.values() or any(job_id in self.facts[name].names for _, name in self.running)

    def sweep(self, now: float) -> None:
        """Do what the policy says."""
        named = {job_id: name for name, job_id in self.assets.items()}
        plan = plan_jobs(list(self.facts.values()), self.rules, now=now, named=named)
        for notice in plan.notices:
            self.facts[notice.unit] = msgspec.structs.replace(self.facts[notice.unit], noticed=now)
        for name in plan.withdrawn:
            self.facts[name] = msgspec.structs.replace(self.facts[name], noticed=0.0)
        removed = {job_id for unit in plan.remove for job_id in unit.members}
        needed = {name for job in self.facts.values() if job.job_id not in removed for name in job.names}
        for job_id in removed:
            job = self.facts.pop(job_id)
            is_noticed = job.deleted or now - job.noticed >= self.rules.keep_notice_days * DAY_S
            self.broken += job_id in needed or job_id in named or not job.ended or not is_noticed
            self.bytes -= job.bytes
        self.removed += len(removed)


def _play(jobs: int, sweep_minutes: int) -> tuple[_Cluster, float]:
    limit = _MEAN_BYTES * 1440 * _DAYS_KEPT
    cluster, began = _Cluster(Rules(keep_jobs_bytes=limit)), time.monotonic()
    for minute in range(jobs):
        now = _START + minute * _MINUTE_S
        cluster.submit(minute, now)
        if minute % 10 == 0:
            cluster.end_jobs(now)
        if minute % sweep_minutes == 0:
            cluster.sweep(now)
    return cluster, time.monotonic() - began


def _fill(root: Path, count: int) -> None:
    """Write the folders of jobs that ended a year ago, without syncing anything."""
    for number in range(count):
        at = _START + number * _MINUTE_S
        job_id = job_id_at(at, str(number))
        layout = Layout(jobs_of(root) / job_id)
        (layout.logs / "user" / "stdout" / "node").mkdir(parents=True)
        layout.make_folders()
        layout.record.write_bytes(encode(JobRecord(job_id=job_id, submitted=at, code="0" * 64, spec={"name": "year"})))
        result = JobResult(job_id=job_id, state=JobState.COMPLETED, started=at, ended=at, progress=Progress())
        layout.result(0).write_bytes(encode(result))
        layout.part("session", "0").write_bytes(b"row\n" * 100)
        (layout.outputs / "rows.txt").write_bytes(b"row\n" * 100)
        (layout.logs / "user" / "stdout" / "node" / "0.stdout.txt").write_bytes(b"line\n" * 100)


def _sweep_for_real(count: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="pr-year-") as folder:
        root, now = Path(folder), _START + 400 * DAY_S
        _fill(root, count)
        rules = Rules(keep_jobs_days=365, keep_notice_days=0)
        first = Sweeper(root, rules, clock=lambda: now, settle_s=0).run()
        second = Sweeper(root, rules, clock=lambda: now, settle_s=0).run()
        if first is None or second is None or len(second.jobs) != count or any(jobs_of(root).iterdir()):
            raise AssertionError("the sweep has not removed all folders")
        has_memory = (retention_of(root) / "measured.json").exists()
        return {"folders": count, "first_sweep_s": first.took_s, "removing_s": second.took_s, "memory": int(has_memory)}


def main(size: Size) -> Figures:
    """Play the year, then sweep for real."""
    jobs, sweep_minutes = _YEAR[size]
    cluster, played_s = _play(jobs, sweep_minutes)
    return {
        "jobs": jobs,
        "peak_to_limit": round(cluster.peak / cluster.rules.keep_jobs_bytes, 3),
        "broken_references": cluster.broken,
        "removed": cluster.removed,
        "played_s": round(played_s, 1),
        **_sweep_for_real(_FOLDERS[size]),
    }
