"""What a mini-batch costs when run() does nothing: 10 short paths each, 2 workers, all defaults on.

Ours: the embedded cluster with AOF everysec; the clock runs from the submission over HTTP to the finished output file,
listing, syncing and concatenation included. In turn with it: `multiprocessing.Pool.imap_unordered(chunksize=1)` with
two processes, which stores nothing durably, its results written to one file; at full size also Ray Data (`map_batches`,
two actors) and Celery (Redis as broker, `acks_late`, two processes), if `rivals/` can run them here.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import Size, data
from benchmarks.bare_loop import run_bare_loop
from benchmarks.jobs import Jobs, check
from benchmarks.measure import Comparison, Figures, cpu_seconds
from benchmarks.rivals import compare as rivals
from benchmarks.rivals.work import EACH, WORKERS, echo, lines, mini_batches_of

PATHS = EACH
SCRIPT = "def run(mini_batch):\n    return mini_batch\n"
_RIVALS = {"Ray Data": ("ray_data", 20_000), "Celery": ("celery_redis", 5_000)}
"""Module in `rivals/`, and how many mini-batches each gets."""
_KEYS = {
    "ParallelRun": "", "multiprocessing.Pool": "pool_", "Ray Data": "ray_data_", "Celery": "celery_",
    "bare loop": "floor_",
}  # fmt: skip


def run_pool(folder: Path, mini_batches: int, output: Path) -> Figures:
    """One round of multiprocessing.Pool."""
    work = mini_batches_of(folder, mini_batches * PATHS)
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        list(pool.imap_unordered(echo, work[:100]))
        cpu, began = cpu_seconds([os.getpid()]), time.perf_counter()
        with output.open("w") as file:
            file.writelines(lines(pool.imap_unordered(echo, work, chunksize=1)))
        wall = time.perf_counter() - began
        used = cpu_seconds([os.getpid()]) - cpu
    check(output, mini_batches * PATHS)
    return {"per_s": mini_batches / wall, "cpu_us": used / mini_batches * 1e6}


def run_ours(jobs: Jobs, folder: Path, mini_batches: int, look_ahead: bool) -> Figures:
    """One round of ours: a job, from its submission to its output."""
    done = jobs.run(folder, rows=mini_batches * PATHS, mini_batch_size=PATHS, look_ahead=look_ahead)
    parts = {f"{name}_us": seconds / mini_batches * 1e6 for name, seconds in done.cpu_by.items()}
    return {"per_s": mini_batches / done.wall_s, "cpu_us": done.cpu_s / mini_batches * 1e6, **parts}


def run_rival(name: str, folder: Path) -> Figures:
    """One round of another system."""
    module, mini_batches = _RIVALS[name]
    found = rivals.measure(module, "noop", folder, mini_batches * PATHS)
    return {"per_s": mini_batches / found["wall_s"], "cpu_us": found["cpu_s"] / mini_batches * 1e6}


def compare(mini_batches: int, rounds: int, *, look_ahead: bool, beside_rivals: bool) -> dict[str, object]:
    """Measure; returns what the last line says."""
    folder = data.files(mini_batches * PATHS)
    with Jobs(SCRIPT, processes=WORKERS) as jobs:
        systems: dict[str, Callable[[], Figures]] = {
            "ParallelRun": lambda: run_ours(jobs, folder, mini_batches, look_ahead),
            "multiprocessing.Pool": lambda: run_pool(folder, mini_batches, jobs.home / "pool.txt"),
        }
        if beside_rivals and rivals.available():
            systems |= {name: lambda name=name: run_rival(name, folder) for name in _RIVALS}  # type: ignore[misc]
        if not look_ahead:
            systems["bare loop"] = lambda: run_bare_loop(folder, mini_batches)
        systems["ParallelRun"]()  # warms the page cache for everybody
        found = Comparison(systems).run(rounds)
    print(found.table())
    last: dict[str, object] = {"mini_batches": mini_batches, "rounds": rounds}
    for name, key in _KEYS.items():
        if name in systems:
            last |= found.spread(name, "cpu_us").fields(f"{key}cpu_us", 1)
            last |= found.spread(name, "per_s").fields(f"{key}per_s", 0)
            if key:
                last |= found.ratio("ParallelRun", name, "per_s").fields(f"ratio_to_{key[:-1]}")
    for part in ("agent", "workers", "redis", "master", "api"):
        last[f"{part}_us"] = f"{found.spread('ParallelRun', f'{part}_us').median:.1f}"
    return last


def main(size: Size) -> dict[str, object]:
    """With look-ahead, as by default."""
    mini_batches, rounds = {"tiny": (500, 1), "quick": (20_000, 3), "full": (200_000, 7)}[size]
    return compare(mini_batches, rounds, look_ahead=True, beside_rivals=size == "full")
