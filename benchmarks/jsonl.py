"""A large file of JSON lines in mini-batches of 10 MB whose rows are counted, against bare loops in two processes.

One loop is `pandas.read_json(lines=True)`, the other `pyarrow.json` into pandas, over the same ranges, round by round
in turn with the job; a round's ratio is to the better of both. All begin with starting processes and importing pandas;
`ratio_to_loop` is against the loops alone. A first job, which is not timed, adds up the columns: the sums must be those
of pandas.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison
from benchmarks.table import SCRIPT, Job, sums_of, table
from benchmarks.table_loop import WORKERS, ranges_of_lines, ratios, run_loop

_KIND: Final = "rows.jsonl"
_CONTENT: Final = """
def content_of(path, start, end):
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(end - start)
"""
_READS: Final = {
    "pandas": """
import io
import pandas as pd
def read(path, start, end):
    return pd.read_json(io.BytesIO(content_of(path, start, end)), lines=True)
""",
    "pyarrow": """
import pyarrow as pa
import pyarrow.json
options = pa.json.ReadOptions(use_threads=False)
def read(path, start, end):
    return pa.json.read_json(pa.BufferReader(content_of(path, start, end)), read_options=options).to_pandas()
""",
}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (100 << 20, 3), "full": (570_000_000, 7)}[size]
    path = table(_KIND, size_bytes) / _KIND
    with pd.read_json(path, lines=True, chunksize=500_000) as frames:
        expected = sums_of(frames)
    print(f"  {path.stat().st_size:,} bytes, {expected[0]:,} rows", flush=True)
    with Jobs(SCRIPT, processes=WORKERS) as jobs:
        job = Job(jobs, path, "read_json_lines")
        ranges = ranges_of_lines(path, job.check(expected), has_header=False)
        loops = {
            name: lambda read=read: run_loop(_CONTENT + read, path, ranges, expected[0])
            for name, read in _READS.items()
        }
        found = Comparison({"ParallelRun": lambda: job.count(expected[0]), **loops}).run(rounds)
    print(found.table(), flush=True)
    return {
        "rows": expected[0], "bytes": path.stat().st_size, "rounds": rounds,
        **ratios(found, list(_READS), name="best"),
        **found.ratio("ParallelRun", "pandas", "mb_per_s").fields("ratio_to_pandas"),
        **found.ratio("ParallelRun", "pyarrow", "mb_per_s").fields("ratio_to_pyarrow"),
    }  # fmt: skip
