"""A function that adds a column to a table and returns all of it, against bare loops that write it by pandas.

The loops run over the same ranges of the same CSV in as many processes as there are workers, round by round in turn
with the job, and write rows by `DataFrame.to_csv`, each process into a file of its own. Both begin with starting
processes and importing pandas; the job's rows are concatenated, in order. `ratio_to_loop` is against the loops alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.table import table
from benchmarks.table_loop import WORKERS, ranges_of_lines, ratios, run_loop
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.wire.message import decode, described_of

_KIND: Final = "plain.csv"
_SCRIPT: Final = """
def run(mini_batch):
    mini_batch["score"] = mini_batch["value"] * 2
    return mini_batch
"""
_READ: Final = """
import io, tempfile
import pandas as pd
output = tempfile.TemporaryFile("w", newline="")
def read(path, start, end):
    with open(path, "rb") as file:
        file.seek(start)
        content = file.read(end - start)
    frame = pd.read_csv(io.BytesIO(content), header=None)
    frame["score"] = frame[3] * 2
    frame.to_csv(output, sep=" ", header=False, index=False)
    return frame
"""


def _job(jobs: Jobs, path: Path, rows: int) -> tuple[Figures, Path]:
    """One job, and its folder.

    Raises:
        RuntimeError: its output has another number of rows.
    """
    inputs = {"data": {"path": str(path.parent), "transformations": ["read_delimited"]}}
    done = jobs.run(path.parent, inputs=inputs, mini_batch_size="10mb", run_invocation_timeout=600)
    with open(str(done.result.output), "rb") as output:
        counted = sum(1 for _ in output)
    if counted != rows:
        raise RuntimeError(f"the job returned {counted:,} rows of {rows:,}")
    size_mb = path.stat().st_size / 1e6
    return {"mb_per_s": size_mb / done.wall_s, "cpu_s_per_gb": done.cpu_s / size_mb * 1000}, done.folder.path


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (100 << 20, 3), "full": (1_000_000_000, 7)}[size]
    path = table(_KIND, size_bytes) / _KIND
    with path.open("rb") as lines:
        rows = sum(1 for _ in lines) - 1
    with Jobs(_SCRIPT, processes=WORKERS) as jobs:
        _, folder = _job(jobs, path, rows)
        pieces = [described_of(decode(entry.raw)).pieces[0] for entry in read_manifest(folder)]
        ranges = ranges_of_lines(path, pieces, has_header=True)
        systems = {
            "ParallelRun": lambda: _job(jobs, path, rows)[0],
            "pandas": lambda: run_loop(_READ, path, ranges, rows),
        }
        found = Comparison(systems).run(rounds)
    print(found.table(), flush=True)
    cpu = found.spread("ParallelRun", "cpu_s_per_gb").median
    return {"rows": rows, "rounds": rounds, **ratios(found, ["pandas"], name="pandas"), "cpu_s_per_gb": f"{cpu:.1f}"}
