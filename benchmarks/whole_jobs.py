"""Jobs over a table from nothing, by `parallelrun run`, beside a bare loop of pandas that starts two processes, too.

The loop reads the same file in ranges of as many bytes, of Parquet in its row groups, every other one in each process;
it starts its processes, imports pandas and pyarrow, and writes and syncs the number of rows of each range, as the job
does. Nothing else is done with the rows. Wall time is that of the whole command; CPU that of all its processes. Ratios
are ours ÷ the loop's, round by round. `warm` are those of jobs on a cluster that runs already, from their submission to
their end, beside the same loop.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks import Size
from benchmarks.cold import compile_packages, cpu_of_ended_children, measure
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.table import table

_WORKERS: Final = 2
_RANGE_BYTES: Final = 10_000_000
_STEPS: Final = {"plain.csv": "read_delimited", "rows.parquet": "read_parquet", "rows.jsonl": "read_json_lines"}
_SCRIPT: Final = "def run(mini_batch):\n    return [len(mini_batch)]\n"
_LOOP: Final = """
import io, os, sys
import pandas as pd
import pyarrow.parquet as pq
path, output, number, workers, range_bytes = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])

def frames_of_parquet():
    with pq.ParquetFile(path) as file:
        for group in range(number, file.num_row_groups, workers):
            yield file.read_row_group(group, use_threads=False).to_pandas()

def frames_of_text(read):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        def record_from(at):
            file.seek(max(at - 1, 0))
            file.readline()
            return file.tell()
        for begin in range(number * range_bytes, size, workers * range_bytes):
            start = record_from(begin) if begin or path.endswith(".csv") else 0
            end = record_from(min(begin + range_bytes, size))
            file.seek(start)
            yield read(io.BytesIO(file.read(end - start)))

if path.endswith(".parquet"):
    frames = frames_of_parquet()
elif path.endswith(".csv"):
    frames = frames_of_text(lambda text: pd.read_csv(text, header=None))
else:
    frames = frames_of_text(lambda text: pd.read_json(text, lines=True))
with open(output, "w") as file:
    file.writelines(f"{len(frame)}\\n" for frame in frames)
    file.flush()
    os.fsync(file.fileno())
"""


def _counted(outputs: list[Path], rows: int) -> None:
    """Check that the numbers of rows of all ranges are those of the file.

    Raises:
        RuntimeError: they are not.
    """
    counted = sum(int(line) for output in outputs for line in output.read_text().splitlines())
    if counted != rows:
        raise RuntimeError(f"{outputs[0]}: {counted:,} rows, not {rows:,}")


def _job(path: Path, home: Path, numbers: Iterator[int], rows: int) -> Figures:
    """One job by the command, from its start to its end."""
    job, output = home / f"job-{path.name}.yml", home / f"out-{next(numbers)}"
    document: dict[str, Any] = {
        "code": str(home / "code"), "entry_script": "entry.py", "mini_batch_size": _RANGE_BYTES,
        "inputs": {"data": {"path": str(path), "transformations": [_STEPS[path.name]]}},
    }  # fmt: skip
    job.write_text(yaml.safe_dump(document))
    command = [str(Path(sys.executable).parent / "parallelrun"), "run", str(job), "--output", str(output)]
    figures = measure([*command, "--processes", str(_WORKERS)])
    _counted([output / "parallel_run_step.txt"], rows)
    return figures


def _warm_job(jobs: Jobs, path: Path, rows: int) -> Figures:
    """One job on a cluster that runs already."""
    data = {"path": str(path), "transformations": [_STEPS[path.name]]}
    done = jobs.run(path, mini_batch_size=_RANGE_BYTES, inputs={"data": data})
    _counted([Path(done.result.output)], rows)
    return {"wall_s": done.wall_s, "cpu_s": done.cpu_s}


def _loop(path: Path, home: Path, numbers: Iterator[int], rows: int) -> Figures:
    """The loop, from the start of its processes to their end."""
    number = next(numbers)
    outputs = [home / f"loop-{number}-{worker}" for worker in range(_WORKERS)]
    before, began = cpu_of_ended_children(), time.perf_counter()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(path), str(output), str(worker), str(_WORKERS), str(_RANGE_BYTES)]
        )
        for worker, output in enumerate(outputs)
    ]
    if any([process.wait() for process in processes]):  # noqa: C419 - all of them are waited for
        raise RuntimeError("a process of the loop has failed")
    figures = {"wall_s": time.perf_counter() - began, "cpu_s": cpu_of_ended_children() - before}
    _counted(outputs, rows)
    return figures


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (50 << 20, 3), "full": (160 << 20, 7)}[size]
    compile_packages()
    with (table("plain.csv", size_bytes) / "plain.csv").open("rb") as lines:
        rows = sum(1 for _ in lines) - 1
    last: dict[str, object] = {"rounds": rounds, "rows": rows}
    with tempfile.TemporaryDirectory(prefix="parallelrun-whole-jobs-") as temporary:
        home, numbers = Path(temporary), count()
        (home / "code").mkdir()
        (home / "code" / "entry.py").write_text(_SCRIPT)
        for kind in _STEPS:
            path = table(kind, size_bytes) / kind
            print(f"  {kind}: {path.stat().st_size:,} bytes", flush=True)
            path.read_bytes()  # it is in the page cache from now on, for both
            job, loop = partial(_job, path, home, numbers, rows), partial(_loop, path, home, numbers, rows)
            last |= _ratios({"job": job, "loop": loop}, rounds, path.suffix[1:])
        with Jobs(_SCRIPT, processes=_WORKERS) as jobs:
            for kind in _STEPS:
                path = table(kind, size_bytes) / kind
                _warm_job(jobs, path, rows)  # which leaves what its workers were forked from
                job, loop = partial(_warm_job, jobs, path, rows), partial(_loop, path, home, numbers, rows)
                last |= _ratios({"job": job, "loop": loop}, rounds, f"warm_{path.suffix[1:]}")
    return last


def _ratios(systems: dict[str, Callable[[], Figures]], rounds: int, name: str) -> dict[str, object]:
    """What the last line says of jobs and loops over one table."""
    found = Comparison(systems).run(rounds)
    print(found.table(), flush=True)
    wall, cpu = (found.ratio("job", "loop", figure) for figure in ("wall_s", "cpu_s"))
    return {**wall.fields(f"{name}_wall_to_loop"), **cpu.fields(f"{name}_cpu_to_loop")}
