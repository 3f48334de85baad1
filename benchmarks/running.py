"""What a cluster of one node costs each second while its workers use no CPU: idle, and while a job runs.

run() sleeps for half a second, so all CPU is overhead: the API, the leader, Redis and the agent. In turn: no job; a job
for which nobody waits; one for whose end a client waits; one that a client polls for each version; one whose events it
follows. In percent of one CPU, by service.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from parallelrun.errors import JobCanceled

_FILES = 2_000
_SCRIPT = "import time\n\ndef run(mini_batch):\n    time.sleep(0.5)\n    return mini_batch\n"
_SPINE = ("api", "master", "redis")
_SETTLE_S = 2.0


def _wait(jobs: Jobs, job: str) -> None:
    with jobs.cluster.client() as client, suppress(JobCanceled):
        client.jobs.wait(job)


def _watch(jobs: Jobs, job: str) -> None:
    with jobs.cluster.client() as client, suppress(JobCanceled):
        client.jobs.wait(job, on_progress=lambda _: None)


def _follow(jobs: Jobs, job: str) -> None:
    with jobs.cluster.client() as client:
        for _ in client.jobs.events(job):
            pass


@contextmanager
def _running(jobs: Jobs, folder: Path, watch: Callable[[Jobs, str], None] | None) -> Iterator[None]:
    job = jobs.start(folder, mini_batch_size=1)
    watcher = threading.Thread(target=watch, args=(jobs, job)) if watch else None
    if watcher:
        watcher.start()
    while not jobs.client.jobs.get(job).progress.running:
        time.sleep(0.1)
    yield
    jobs.client.jobs.cancel(job)
    if watcher:
        watcher.join()


def _measure(jobs: Jobs, seconds: float) -> Figures:
    time.sleep(_SETTLE_S)  # the cost of a job's start is not measured here
    before, began = jobs.cpu_by(), time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - began
    used = {name: 100 * (cpu_s - before[name]) / passed for name, cpu_s in jobs.cpu_by().items()}
    return {"api_leader_redis": sum(used[name] for name in _SPINE), **used}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds, seconds = {"tiny": (1, 0.5), "quick": (2, 8.0), "full": (3, 30.0)}[size]
    folder = data.files(_FILES)
    with Jobs(_SCRIPT) as jobs:

        def job(watch: Callable[[Jobs, str], None] | None = None) -> Figures:
            jobs.settle()
            with _running(jobs, folder, watch):
                return _measure(jobs, seconds)

        systems: dict[str, Callable[[], Figures]] = {
            "idle": lambda: _measure(jobs, seconds),
            "job": job,
            "job, waited for": lambda: job(_wait),
            "job, watched": lambda: job(_watch),
            "job, followed": lambda: job(_follow),
        }
        found = Comparison(systems).run(rounds)
    print("percent of one CPU")
    print(found.table())
    last: dict[str, object] = {"rounds": rounds, "seconds": seconds}
    for name in systems:
        last |= found.spread(name, "api_leader_redis").fields(name.replace(", ", "_").replace(" ", "_") + "_percent", 1)
    return last
