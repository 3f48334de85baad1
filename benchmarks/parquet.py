"""Large Parquet files in mini-batches of 10 MB whose rows are counted, against pyarrow → pandas in two processes.

The columns are numbers, texts, dates, times, a dictionary, lists and objects. One file has row groups of 1,048,576
rows, as pandas writes them, of which each is several mini-batches; the other of 50,000 rows (`small_groups_`). `flat_`
is the first without lists and objects, in mini-batches of 1 MiB, the default. The loop reads every other row group in
each process, round by round in turn with the job. Both begin with starting processes and importing pandas;
`ratio_to_loop` is against the loops alone. A first job, which is not timed, adds up columns: the sums must be those of
the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison
from benchmarks.table import SCRIPT, Job, sums_of
from benchmarks.table_loop import WORKERS, ratios, run_loop

_KIND: Final = "rows.parquet"
_ROWS_OF_GROUP: Final = 1 << 20
_NESTED: Final = ["tags", "place"]
_READ: Final = """
import pyarrow.parquet as pq
files = {}
def read(path, group):
    if path not in files:
        files[path] = pq.ParquetFile(path)
    return files[path].read_row_group(group, use_threads=False).to_pandas()
"""


def _file(size_bytes: int, rows_of_group: int = _ROWS_OF_GROUP, *, is_flat: bool = False) -> Path:
    """A file of about so many bytes."""

    def write(folder: Path) -> None:
        folder.mkdir()
        path = folder / _KIND
        rng, first = np.random.default_rng(0), 0
        dropped = _NESTED if is_flat else []
        with pq.ParquetWriter(path, _rows(rng, 0, 1).drop_columns(dropped).schema) as file:
            while path.stat().st_size < size_bytes:
                rows = _rows(rng, first, rows_of_group).drop_columns(dropped)
                file.write_table(rows, row_group_size=rows_of_group)
                first += rows_of_group

    return data.cached(f"parquet-{rows_of_group}-{size_bytes}-{is_flat}", write) / _KIND


def _rows(rng: np.random.Generator, first: int, count: int) -> pa.Table:
    numbers = rng.integers(0, 1000, count)
    words = pa.array([f"word {number}" for number in range(1000)])
    tags = pa.array(rng.integers(0, 1000, 2 * count)).cast(pa.int32())
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 4, count))]).clip(max=2 * count)
    columns: dict[str, Any] = {
        "id": np.arange(first, first + count),
        "note": [f"{number}, a text of some length, {at:x}" for at, number in enumerate(numbers.tolist(), first)],
        "value": (rng.random(count) * 1e10).round() / 1e4,
        "flag": numbers % 2,
        "city": pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), words),
        "day": pa.array((19_700 + numbers).astype(np.int32)).cast(pa.date32()),
        "at": pa.array(1_700_000_000_000_000 + 1_000_003 * np.arange(first, first + count)).cast(pa.timestamp("us")),
        "tags": pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), words.take(tags)),
        "place": pa.StructArray.from_arrays([pa.array(rng.random(count)), pa.array(numbers)], ["height", "zone"]),
    }
    return pa.table(columns)


def _groups(path: Path) -> Iterator[pd.DataFrame]:
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group).to_pandas()


def _measure(jobs: Jobs, path: Path, rounds: int, prefix: str, **spec: Any) -> dict[str, object]:
    groups = [(group,) for group in range(pq.read_metadata(path).num_row_groups)]
    expected = sums_of(_groups(path))
    job = Job(jobs, path, "read_parquet", **spec)
    mini_batches = len(job.check(expected))
    size, rows = path.stat().st_size, expected[0]
    print(f"  {size:,} bytes, {rows:,} rows in {len(groups):,} row groups, {mini_batches:,} mini-batches", flush=True)
    systems: dict[str, Callable[[], Any]] = {
        "ParallelRun": lambda: job.count(rows),
        "pyarrow": lambda: run_loop(_READ, path, groups, rows),
    }
    found = Comparison(systems).run(rounds)
    print(found.table(), flush=True)
    return {
        f"{prefix}bytes": size, f"{prefix}rows": rows, f"{prefix}mini_batches": mini_batches,
        **ratios(found, ["pyarrow"], name="pyarrow", prefix=prefix),
    }  # fmt: skip


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (100 << 20, 3), "full": (1_000_000_000, 7)}[size]
    last: dict[str, object] = {"rounds": rounds}
    with Jobs(SCRIPT, processes=WORKERS) as jobs:
        last |= _measure(jobs, _file(size_bytes), rounds, "")
        last |= _measure(jobs, _file(size_bytes // 4, 50_000), rounds, "small_groups_")
        last |= _measure(jobs, _file(size_bytes // 2, is_flat=True), rounds, "flat_", mini_batch_size=None)
    return last
