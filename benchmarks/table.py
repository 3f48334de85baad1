"""Large tables in mini-batches of 10 MB whose rows are counted, against a bare loop of `pandas.read_csv`.

The loop runs over the same ranges of the same file in as many processes as there are workers, round by round in turn
with the job. Both begin with starting processes and importing pandas, and the job's time includes its finished output;
`ratio_to_loop` is against the loops alone. A first job, which is not timed, adds up the columns: the sums must be those
of one pass of pandas over the whole file.

Measured are a plain CSV, and one with newlines in quoted fields, which the master has to scan. Parquet and JSON lines
are read once for their figures. `looks` is the CPU time of reading with the looks for values that would change ÷ that
without them (`table_looks.py`); `wide_ratio_to_pandas` is about a table of 20,000 columns (`table_wide.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks import Size, data
from benchmarks.jobs import Jobs, Run
from benchmarks.measure import Comparison, Figures, Spread
from benchmarks.memory import Peaks
from benchmarks.table_looks import looks
from benchmarks.table_wide import wide
from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.wire.message import Piece, decode, described_of

_ROWS = 20_000
_WORKERS: Final = 2
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
_SCRIPT = (
    _SUMS
    + """
import resource, sys
IS_CHECK = "--check" in sys.argv
def run(mini_batch):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [" ".join(map(str, [*(sums(mini_batch) if IS_CHECK else [len(mini_batch)]), peak]))]
"""
)
_LOOP = """
import io, json, sys, time
import pandas as pd
path, *ranges = json.load(sys.stdin)
began, rows = time.perf_counter(), 0
for start, end in ranges:
    with open(path, "rb") as file:
        file.seek(start)
        content = file.read(end - start)
    rows += len(pd.read_csv(io.BytesIO(content), header=None))
print(rows, time.perf_counter() - began)
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


def whole(path: Path) -> list[int]:
    """The sums of one pass of pandas over a file."""
    scope: dict[str, Any] = {}
    exec(_SUMS, scope)  # noqa: S102 - the very code that the job runs
    with pd.read_csv(path, chunksize=500_000) as chunks:
        return _totals([scope["sums"](chunk) for chunk in chunks])


def _totals(found: list[Any]) -> list[int]:
    columns = [sum(map(int, column)) for column in zip(*found, strict=True)]
    return [*columns[:4], *(total % (1 << 64) for total in columns[4:])]


class Job:
    """The jobs over one table."""

    def __init__(self, jobs: Jobs, folder: Path, kind: str) -> None:
        self._jobs = jobs
        self._folder = folder
        self._step = _STEPS[kind]
        self.path = folder / kind
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
        inputs = {"data": {"path": str(self._folder), "transformations": [self._step]}}
        done = self._jobs.run(self._folder, inputs=inputs, mini_batch_size="10mb", run_invocation_timeout=600, **spec)
        return done, [line.split() for line in Path(done.result.output).read_text().splitlines()]


def own_ranges(path: Path, pieces: list[Piece]) -> list[tuple[int, int]]:
    """The bytes of the records that each piece owns; the header is nobody's."""
    with path.open("rb") as file:

        def record_from(at: int) -> int:
            file.seek(max(at - 1, 0))
            file.readline()
            return file.tell()

        starts = [piece.start if piece.is_aligned else record_from(piece.start) for piece in pieces]
    return list(zip(starts, [*starts[1:], path.stat().st_size], strict=True))


def run_pandas(path: Path, ranges: list[tuple[int, int]], rows: int) -> Figures:
    """The bare loop in two processes at the same time, each over every other range.

    Raises:
        RuntimeError: it found another number of rows.
    """
    began = time.perf_counter()
    command = [sys.executable, "-c", _LOOP]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(_WORKERS)
    ]
    for number, process in enumerate(processes):
        assert process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        json.dump([str(path), *ranges[number::_WORKERS]], process.stdin)
        process.stdin.close()
    found = [process.stdout.read().split() for process in processes if process.stdout is not None]
    if any(process.wait() for process in processes) or sum(int(counted) for counted, _ in found) != rows:
        raise RuntimeError(f"pandas counted {found}, not {rows:,}")
    size_mb = path.stat().st_size / 1e6
    loop_s = max(float(seconds) for _, seconds in found)
    return {"mb_per_s": size_mb / (time.perf_counter() - began), "loop_mb_per_s": size_mb / loop_s}


def _compare(jobs: Jobs, kind: str, size_bytes: int, rounds: int) -> tuple[Comparison, dict[str, object]]:
    folder = table(kind, size_bytes)
    expected = whole(folder / kind)
    print(f"  {kind}: {expected[0]:,} rows, {(folder / kind).stat().st_size:,} bytes; sums {expected[1:]}", flush=True)
    job = Job(jobs, folder, kind)
    pieces = job.check(expected)
    ranges = own_ranges(job.path, pieces)
    systems = {
        "ParallelRun": lambda: job.count(expected[0]), "pandas": lambda: run_pandas(job.path, ranges, expected[0]),
    }  # fmt: skip
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
    with Jobs(_SCRIPT, processes=_WORKERS) as jobs:
        for kind, prefix, smaller in (("plain.csv", "", 1), ("quoted.csv", "quoted_", 4)):
            found, about = _compare(jobs, kind, size_bytes // smaller, rounds)
            pairs = zip(found.values("ParallelRun", "mb_per_s"), found.values("pandas", "loop_mb_per_s"), strict=True)
            loop = Spread.of(ours / theirs for ours, theirs in pairs)
            last |= {
                **{f"{prefix}{name}": value for name, value in about.items()},
                **found.spread("ParallelRun", "mb_per_s").fields(f"{prefix}mb_per_s", 0),
                **found.ratio("ParallelRun", "pandas", "mb_per_s").fields(f"{prefix}ratio_to_pandas"),
                f"{prefix}ratio_to_loop": f"{loop.median:.2f}",
                f"{prefix}cpu_s_per_gb": f"{found.spread('ParallelRun', 'cpu_s_per_gb').median:.1f}",
                f"{prefix}worker_mb": f"{max(found.values('ParallelRun', 'worker_mb')):.0f}",
            }
        for kind in ("rows.parquet", "rows.jsonl"):
            job = Job(jobs, table(kind, size_bytes // 10), kind)
            rows = whole(table("plain.csv", size_bytes // 10) / "plain.csv")[0]
            figures = job.count(rows)
            print(f"  {kind}: {figures}", flush=True)
            last[f"{job.path.suffix[1:]}_mb_per_s"] = f"{figures['mb_per_s']:.0f}"
    return last
