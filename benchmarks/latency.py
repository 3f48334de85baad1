"""One trivial mini-batch, or command: from submission to `completed` on a warm cluster, and of the former also from
nothing by `parallelrun run`."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

from benchmarks import Size, cold, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.noop import SCRIPT


def warm(jobs: Jobs, folder: Path) -> Figures:
    """A job on a running cluster."""
    return {"seconds": jobs.run(folder, rows=1, mini_batch_size=1).wall_s}


def command(jobs: Jobs) -> Figures:
    """A shell command that does nothing, on a running cluster."""
    jobs.settle()
    began = time.perf_counter()
    jobs.client.jobs.wait(jobs.client.jobs.create({"command": "true"}).id)
    return {"seconds": time.perf_counter() - began}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds = {"tiny": 1, "quick": 3, "full": 9}[size]
    folder = data.files(1)
    with Jobs(SCRIPT) as jobs:
        cold.compile_packages()
        job, numbers = cold.write_job(jobs.home, folder), count()
        found = Comparison(
            {
                "warm cluster": lambda: warm(jobs, folder),
                "command, warm cluster": lambda: command(jobs),
                "from nothing": lambda: cold.from_nothing(job, jobs.home / f"out-{next(numbers)}"),
            }
        ).run(rounds)
    print(found.table())
    return {
        "rounds": rounds,
        **found.spread("warm cluster", "seconds").fields("warm_s"),
        **found.spread("command, warm cluster", "seconds").fields("command_s"),
        **found.spread("from nothing", "wall_s").fields("cold_s"),
    }
