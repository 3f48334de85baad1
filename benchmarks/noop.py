"""What a mini-batch costs when run() does nothing: 10 short paths each, 2 workers, all defaults on.

Ours: the embedded cluster with AOF everysec; the clock runs from the submission over HTTP to the finished output file,
listing, syncing and concatenation included. Beside it, in turn: `multiprocessing.Pool.imap_unordered(chunksize=1)` with
two processes, which keeps nothing and syncs nothing, its results written to one file.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Spread, cpu_seconds
from parallelrun.client import Client
from parallelrun.embedded.cluster import Cluster

PATHS = 10
WORKERS = 2
SCRIPT = "def run(mini_batch):\n    return mini_batch\n"


class Round(NamedTuple):
    """One measurement of one system."""

    per_s: float
    cpu_us: float


def echo(paths: list[str]) -> list[str]:
    """What the workers of the pool run."""
    return paths


def names(mini_batches: int) -> Iterator[list[str]]:
    """The names of the files, as they are cut."""
    for first in range(0, mini_batches * PATHS, PATHS):
        yield [f"img_{number:07d}.jpg" for number in range(first, first + PATHS)]


def run_pool(folder: Path, mini_batches: int, output: Path) -> Round:
    """One round of multiprocessing.Pool."""
    work = [[f"{folder}/{name}" for name in chunk] for chunk in names(mini_batches)]
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        list(pool.imap_unordered(echo, work[:100]))
        cpu, began = cpu_seconds([os.getpid()]), time.perf_counter()
        with output.open("w") as file:
            for rows in pool.imap_unordered(echo, work, chunksize=1):
                file.write("\n".join(rows) + "\n")
        wall = time.perf_counter() - began
        used = cpu_seconds([os.getpid()]) - cpu
    _check(output, mini_batches)
    return Round(mini_batches / wall, used / mini_batches * 1e6)


def run_ours(client: Client, cluster: Cluster, spec: dict[str, object], mini_batches: int) -> Round:
    """One round of ours: a job, from its submission to its output."""
    _settle(client)
    cpu, began = cpu_seconds(cluster.pids().values()), time.perf_counter()
    job = client.jobs.wait(client.jobs.create(spec, upload_code=False).id)
    wall = time.perf_counter() - began
    _settle(client)
    used = cpu_seconds(cluster.pids().values()) - cpu
    if job.output is None:
        raise RuntimeError(f"the job has no output: {job.failure}")
    _check(Path(job.output.path), mini_batches)
    return Round(mini_batches / wall, used / mini_batches * 1e6)


def _settle(client: Client) -> None:
    """Until no worker of an earlier job is left, so that its CPU is counted where it belongs."""
    while any(node.jobs for node in client.nodes()):
        time.sleep(0.05)


def _check(output: Path, mini_batches: int) -> None:
    found = {os.path.basename(line) for line in output.read_text().splitlines()}
    if len(found) != mini_batches * PATHS:
        raise RuntimeError(f"{output}: {len(found)} different rows")


def main(*, full: bool) -> dict[str, object]:
    """Measure; returns what the last line says."""
    mini_batches, rounds = (100_000, 7) if full else (20_000, 5)
    with tempfile.TemporaryDirectory(prefix="parallelrun-noop-") as scratch:
        home = Path(scratch)
        data, code = home / "data/2020/10", home / "code"
        data.mkdir(parents=True)
        code.mkdir()
        for chunk in names(mini_batches):
            for name in chunk:
                (data / name).touch()
        (code / "entry.py").write_text(SCRIPT)
        spec: dict[str, object] = {
            "name": "noop",
            "code": str(code),
            "entry_script": "entry.py",
            "inputs": {"data": {"path": str(data)}},
            "mini_batch_size": PATHS,
        }
        ours, pool = [], []
        with Cluster(home / "cluster", nodes=1, processes=WORKERS) as cluster, cluster.client() as client:
            run_ours(client, cluster, spec, mini_batches)  # warms the page cache for both
            for number in range(rounds):
                pool.append(run_pool(data, mini_batches, home / "pool.txt"))
                ours.append(run_ours(client, cluster, spec, mini_batches))
                print(
                    f"round {number + 1}: ours {ours[-1].per_s:,.0f}/s {ours[-1].cpu_us:.0f} us, "
                    f"pool {pool[-1].per_s:,.0f}/s {pool[-1].cpu_us:.0f} us"
                )
    ratios = Spread.of(mine.per_s / theirs.per_s for mine, theirs in zip(ours, pool, strict=True))
    per_s, pool_per_s = Spread.of(r.per_s for r in ours), Spread.of(r.per_s for r in pool)
    cpu, pool_cpu = Spread.of(r.cpu_us for r in ours), Spread.of(r.cpu_us for r in pool)
    print(f"{'':24}{'mini-batches/s':>32}{'CPU us per mini-batch':>28}")
    print(f"{'ParallelRun':24}{per_s.show():>32}{cpu.show():>28}")
    print(f"{'multiprocessing.Pool':24}{pool_per_s.show():>32}{pool_cpu.show():>28}")
    return {
        "mini_batches": mini_batches,
        "rounds": rounds,
        "per_s": round(per_s.median),
        "pool_per_s": round(pool_per_s.median),
        "ratio_to_pool": f"{ratios.median:.2f}",
        "ratio_low": f"{ratios.low:.2f}",
        "ratio_high": f"{ratios.high:.2f}",
        "cpu_us": f"{cpu.median:.1f}",
        "cpu_us_low": f"{cpu.low:.1f}",
        "cpu_us_high": f"{cpu.high:.1f}",
        "pool_cpu_us": f"{pool_cpu.median:.1f}",
    }
