"""A large CSV with newlines in quoted fields, 10 MB in each mini-batch: the master's and the workers' memory, and
speed.

Every row counts: what the job adds up over its mini-batches must be what one pass of pandas over the whole file does.
Beside the job: `pandas.read_csv` alone, over the same ranges, in one process.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.memory import Peaks
from parallelrun_core.manifest import read_manifest
from parallelrun_core.message import Piece, decode, described_of

_ROWS = 20_000
_STEP: dict[str, Any] = {"read_delimited": {"support_multi_line": True}}
_SUMS = """
import pandas as pd
def sums(frame):
    notes = int(pd.util.hash_array(frame["note"].to_numpy(dtype=object), categorize=False).sum())
    money = (frame["value"] * 10_000).round()
    return len(frame), int(frame["id"].sum()), int(money.sum()), int(frame["flag"].sum()), notes
"""
_SCRIPT = (
    _SUMS
    + """
import resource
def run(mini_batch):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [" ".join(map(str, [*sums(mini_batch), peak]))] + [""] * (len(mini_batch) - 1)
"""
)


def table(size_bytes: int) -> Path:
    """A folder with one file of about so many bytes; a third of the rows have a newline in a quoted field."""
    path = data.folder() / f"table-{size_bytes}" / "rows.csv"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(".beside")
        with beside.open("w", newline="") as file:
            file.write("id,name,note,value,flag,when\n")
            rng, first = np.random.default_rng(0), 0
            while file.tell() < size_bytes:
                file.write("".join(_lines(rng, first)))
                first += _ROWS
        beside.rename(path)
    return path.parent


def _lines(rng: np.random.Generator, first: int) -> Iterator[str]:
    values, numbers = rng.random(_ROWS) * 1e6, rng.integers(0, 1000, _ROWS)
    for at, (value, number) in enumerate(zip(values, numbers, strict=True)):
        note = f'line one {number}\nline ""two"", {at}' if number % 3 == 0 else f"plain, {number} text of some length"
        yield f'{first + at},name{number},"{note}",{value:.4f},{number % 2},2024-01-{1 + number % 28:02d}\n'


def pieces(folder: Path) -> list[Piece]:
    """What a job's mini-batches were cut into."""
    return [described_of(decode(entry.raw)).pieces[0] for entry in read_manifest(folder)]


def whole(folder: Path) -> list[int]:
    """The same sums, of one pass of pandas over the file."""
    scope: dict[str, Any] = {}
    exec(_SUMS, scope)  # noqa: S102 - the very code that the job runs
    with pd.read_csv(folder / "rows.csv", chunksize=500_000) as chunks:
        found = np.array([scope["sums"](chunk) for chunk in chunks], dtype=object)
    return _totals(found)


def _totals(found: Any) -> list[int]:
    return [*map(int, found[:, :4].sum(axis=0)), int(found[:, 4].sum()) % (1 << 64)]


def run_pandas(ranges: list[Piece]) -> Figures:
    """pandas alone, over the same ranges."""
    began = time.perf_counter()
    for piece in ranges:
        with open(piece.path, "rb") as file:
            file.seek(piece.start)
            content = file.read(piece.end - piece.start)
        pd.read_csv(io.BytesIO(content), header=None)
    return {"mb_per_s": sum(piece.end - piece.start for piece in ranges) / 1e6 / (time.perf_counter() - began)}


def run_ours(jobs: Jobs, folder: Path, expected: list[int]) -> tuple[Figures, list[Piece]]:
    """One job."""
    inputs = {"data": {"path": str(folder), "transformations": [_STEP]}}
    with Peaks(jobs.cluster.pids()) as peaks:
        done = jobs.run(folder, inputs=inputs, mini_batch_size="10mb", run_invocation_timeout=600)
    lines = [line.split() for line in Path(done.result.output).read_text().splitlines() if line]
    found = np.array([list(map(int, line)) for line in lines], dtype=object)
    if _totals(found) != expected or done.result.progress.items_done != expected[0]:
        raise RuntimeError(f"the job found {_totals(found)}, pandas {expected}")
    size = (folder / "rows.csv").stat().st_size
    figures = {"mb_per_s": size / 1e6 / done.wall_s, "cpu_s_per_gb": done.cpu_s / size * 1e9}
    return figures | {"master_mb": peaks.mb["master"], "worker_mb": int(found[:, 5].max()) / 1024}, pieces(
        done.folder.path
    )


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (200 << 20, 2), "full": (2_000_000_000, 3)}[size]
    folder = table(size_bytes)
    expected = whole(folder)
    print(f"  {expected[0]:,} rows in {(folder / 'rows.csv').stat().st_size:,} bytes; sums {expected[1:]}", flush=True)
    with Jobs(_SCRIPT) as jobs:
        _, ranges = run_ours(jobs, folder, expected)
        found = Comparison(
            {
                "ParallelRun, 2 workers": lambda: run_ours(jobs, folder, expected)[0],
                "pandas, 1 process": lambda: run_pandas(ranges[1:]),
            }
        ).run(rounds)
    print(found.table())
    ours = "ParallelRun, 2 workers"
    return {
        "rows": expected[0],
        "mini_batches": len(ranges),
        **found.spread(ours, "mb_per_s").fields("mb_per_s", 0),
        "master_mb": f"{max(found.values(ours, 'master_mb')):.0f}",
        "worker_mb": f"{max(found.values(ours, 'worker_mb')):.0f}",
    }
