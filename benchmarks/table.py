"""Large tables in mini-batches of 10 MB whose rows are counted, against a bare loop of `pandas.read_csv`.

The loop runs over the same ranges of the same file in as many processes as there are workers, round by round in turn
with the job. Both begin with starting processes and importing pandas, and the job's time includes its finished output;
`ratio_to_loop` is against the loops alone. A first job, which is not timed, adds up the columns: the sums must be those
of one pass of pandas over the whole file.

Measured are a plain CSV, and one with newlines in quoted fields, which the master has to scan. `looks` is the CPU time
of reading with the looks for values that would change ÷ that without them (`table_looks.py`); `wide_ratio_to_pandas` is
about a table of 20,000 columns (`table_wide.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks import Size, data
from benchmarks.jobs import Jobs, Run
from benchmarks.measure import Comparison, Figures
from benchmarks.memory import Peaks
from benchmarks.table_looks import looks
from benchmarks.table_loop import WORKERS, ranges_of_lines, ratios, run_loop
from benchmarks.table_wide import wide
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.wire.message import Piece, decode, described_of

_ROWS = 20_000
_STEPS: Final[dict[str, Any]] = {
    "plain.csv": "read_delimited", "quoted.csv": {"read_delimited": {"support_multi_line": True}},
    "rows.parquet": "read_parquet", "rows.jsonl": "read_json_lines",
}  # fmt: skip
_SUMS = """
import pandas as pd
def sums(frame):
    notes = int(pd.util.hash_array(frame["note"].to_numpy(dtype=object), categorize=False).sum())
    money = (frame["value"] * 10_000).round()
    return len(frame), int(frame["id"].sum()), int(money.sum()), int(frame["flag"].sum()), notes
"""
SCRIPT = (
    _SUMS
    + """
import resource, sys
IS_CHECK = "--check" in sys.argv
def run(mini_batch):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [" ".join(map(str, [*(sums(mini_batch) if IS_CHECK else [len(mini_batch)]), peak]))]
"""
)
_READ = """
import io
import pandas as pd
def read(path, start, end):
    with open(path, "rb") as file:
        file.seek(start)
        content = file.read(end - start)
    return pd.read_csv(io.BytesIO(content), header=None)
"""


def table(kind: str, size_bytes: int) -> Path:
    """A folder with one file, of about so many bytes of text."""

    def write(folder: Path) -> None:
        folder.mkdir()
        path = folder / kind
        if kind.endswith(".csv"):
            _write_csv(path, size_bytes, has_newlines=kind == "quoted.csv")
        else:
            frame = pd.read_csv(table("plain.csv", size_bytes) / "plain.csv")
            if kind == "rows.parquet":
                frame.to_parquet(path, row_group_size=100_000)
            else:
                frame.to_json(path, orient="records", lines=True)

    return data.cached(f"table-{kind}-{size_bytes}", write)


def _write_csv(path: Path, size_bytes: int, *, has_newlines: bool) -> None:
    with path.open("w", newline="") as file:
        file.write("id,name,note,value,flag,when\n")
        rng, first = np.random.default_rng(0), 0
        while file.tell() < size_bytes:
            file.write("".join(_lines(rng, first, "\n" if has_newlines else " ")))
            first += _ROWS


def _lines(rng: np.random.Generator, first: int, space: str) -> Iterator[str]:
    """A third of the rows have quotes in a quoted field, and a newline if `space` is one."""
    values, numbers = rng.random(_ROWS) * 1e6, rng.integers(0, 1000, _ROWS)
    for at, (value, number) in enumerate(zip(values, numbers, strict=True)):
        two = f'line one {number}{space}line ""two"", {at}'
        note = two if number % 3 == 0 else f"plain, {number} text of some length"
        yield f'{first + at},name{number},"{note}",{value:.4f},{number % 2},2024-01-{1 + number % 28:02d}\n'


def sums_of(frames: Iterable[pd.DataFrame]) -> list[int]:
    """The sums of all of these rows."""
    scope: dict[str, Any] = {}
    exec(_SUMS, scope)  # noqa: S102 - the very code that the job runs
    return _totals([scope["sums"](frame) for frame in frames])


def _sums_of_csv(path: Path) -> list[int]:
    with pd.read_csv(path, chunksize=500_000) as chunks:
        return sums_of(chunks)


def _totals(found: list[Any]) -> list[int]:
    columns = [sum(map(int, column)) for column in zip(*found, strict=True)]
    return [*columns[:4], *(total % (1 << 64) for total in columns[4:])]


class Job:
    """The jobs over one table, in mini-batches of 10 MB if the spec doesn't say otherwise.

    Args:
        path: the only file of its folder.
        step: the transformation that reads it.
        spec: more of their spec.
    """

    def __init__(self, jobs: Jobs, path: Path, step: Any, **spec: Any) -> None:
        self._jobs = jobs
        self._step = step
        self._spec = {"mini_batch_size": "10mb", "run_invocation_timeout": 600, **spec}
        self.path = path
        self.master_mb = 0.0
        """The most memory that the master or a leader had while the sums were compared."""

    def check(self, expected: list[int]) -> list[Piece]:
        """Check that a job finds these sums; returns its pieces.

        Raises:
            RuntimeError: it finds others.
        """
        with Peaks(self._jobs.cluster.pids()) as peaks:  # what watches takes CPU, so it watches this job alone
            done, lines = self._run(program_arguments="--check")
        self.master_mb = peaks.mb["master"]
        found = _totals([line[:5] for line in lines])
        if found != expected:
            raise RuntimeError(f"the job found {found}, pandas {expected}")
        return [described_of(decode(entry.raw)).pieces[0] for entry in read_manifest(done.folder.path)]

    def count(self, rows: int) -> Figures:
        """One job that counts the rows.

        Raises:
            RuntimeError: there are others.
        """
        done, lines = self._run()
        if sum(int(line[0]) for line in lines) != rows:
            raise RuntimeError(f"the job counted {sum(int(line[0]) for line in lines):,} rows of {rows:,}")
        size = self.path.stat().st_size
        by_service = ", ".join(f"{name} {seconds:.1f}" for name, seconds in done.cpu_by.items())
        print(f"    CPU seconds: {by_service}", flush=True)
        return {
            "mb_per_s": size / 1e6 / done.wall_s,
            "cpu_s_per_gb": done.cpu_s / size * 1e9,
            "worker_mb": max(int(line[-1]) for line in lines) / 1024,
        }

    def _run(self, **spec: Any) -> tuple[Run, list[list[str]]]:
        folder = self.path.parent
        inputs = {"data": {"path": str(folder), "transformations": [self._step]}}
        done = self._jobs.run(folder, inputs=inputs, **self._spec, **spec)
        return done, [line.split() for line in Path(done.result.output).read_text().splitlines()]


def _compare(jobs: Jobs, kind: str, size_bytes: int, rounds: int) -> tuple[Comparison, dict[str, object]]:
    folder = table(kind, size_bytes)
    expected = _sums_of_csv(folder / kind)
    print(f"  {kind}: {expected[0]:,} rows, {(folder / kind).stat().st_size:,} bytes; sums {expected[1:]}", flush=True)
    job = Job(jobs, folder / kind, _STEPS[kind])
    pieces = job.check(expected)
    ranges = ranges_of_lines(job.path, pieces, has_header=True)
    systems = {
        "ParallelRun": lambda: job.count(expected[0]),
        "pandas": lambda: run_loop(_READ, job.path, ranges, expected[0]),
    }
    found = Comparison(systems).run(rounds)
    print(found.table(), flush=True)
    return found, {"rows": expected[0], "mini_batches": len(pieces), "master_mb": f"{job.master_mb:.0f}"}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (200 << 20, 3), "full": (2_000_000_000, 7)}[size]
    last: dict[str, object] = {}
    for kind, prefix in (("plain.csv", ""), ("quoted.csv", "quoted_"), ("rows.jsonl", "jsonl_")):
        found_looks = looks(table(kind, size_bytes // 10) / kind, _STEPS[kind], 3 if size == "tiny" else 60)
        last[f"{prefix}looks"] = f"{found_looks.median:.3f}"
    columns, wide_rounds = (600, 1) if size == "tiny" else (20_000, 7)
    last |= wide(columns, wide_rounds).fields("wide_ratio_to_pandas")
    with Jobs(SCRIPT, processes=WORKERS) as jobs:
        for kind, prefix, smaller in (("plain.csv", "", 1), ("quoted.csv", "quoted_", 4)):
            found, about = _compare(jobs, kind, size_bytes // smaller, rounds)
            last |= {
                **{f"{prefix}{name}": value for name, value in about.items()},
                **ratios(found, ["pandas"], name="pandas", prefix=prefix),
                f"{prefix}cpu_s_per_gb": f"{found.spread('ParallelRun', 'cpu_s_per_gb').median:.1f}",
                f"{prefix}worker_mb": f"{max(found.values('ParallelRun', 'worker_mb')):.0f}",
            }
    return last
