"""Very many mini-batches in one job, 10 files each, run() returning them: how long, and whether anything grows.

Checks that every mini-batch is in the output and in the reports, and that no process needs more memory for many than
for few.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.memory import Peaks
from benchmarks.noop import PATHS, SCRIPT


def measure(jobs: Jobs, folder: Path, mini_batches: int) -> Figures:
    """One job, checked."""
    with Peaks(jobs.cluster.pids()) as peaks:
        done = jobs.run(folder, mini_batch_size=PATHS)
    progress = done.result.progress
    with open(done.result.output, "rb") as rows:
        count = sum(block.count(b"\n") for block in iter(lambda: rows.read(1 << 20), b""))
    if (progress.done, progress.items_done, count) != (mini_batches, mini_batches * PATHS, mini_batches * PATHS):
        raise RuntimeError(f"not complete: {progress}, {count:,} rows")
    memory = {f"{name}_mb": mb for name, mb in peaks.mb.items()}
    return {"job_s": done.wall_s, "cpu_us": done.cpu_s / mini_batches * 1e6, **memory}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    folders, files = {"tiny": (2, 2_000), "quick": (5, 200_000), "full": (10, 1_000_000)}[size]
    one = data.files(files)
    many = data.again(one, folders)
    few, mini_batches = files // PATHS, folders * files // PATHS
    with Jobs(SCRIPT) as jobs:
        found = Comparison(
            {
                f"{few:,} mini-batches": lambda: measure(jobs, one, few),
                f"{mini_batches:,} mini-batches": lambda: measure(jobs, many, mini_batches),
            }
        ).run(1)
        names = list(jobs.cluster.pids())
    print(found.table())
    whole, part = f"{mini_batches:,} mini-batches", f"{few:,} mini-batches"
    growth = {
        name: found.spread(whole, f"{name}_mb").median - found.spread(part, f"{name}_mb").median for name in names
    }
    worst = max(names, key=lambda name: growth[name])
    return {
        "mini_batches": mini_batches,
        "job_s": f"{found.spread(whole, 'job_s').median:.1f}",
        "cpu_us": f"{found.spread(whole, 'cpu_us').median:.1f}",
        "grew_most": worst,
        "grew_mb": f"{growth[worst]:.0f}",
        "largest_mb": f"{max(found.spread(whole, f'{name}_mb').median for name in names):.0f}",
    }
