"""Reading of tables for run(), in each form that it may have, beside bare loops over the same rows: CPU of one process.

All read the same 10 MB of a file (all rows of a small Parquet file) in turn, pair by pair, so that whatever else the
machine does meets all alike. Ratios are the CPU time of the loop ÷ ours; more than 1: less CPU than the loop. A loop of
pandas is `read_csv`, `read_json(lines=True)` or `read_parquet`, one of pyarrow has no pandas at all. Nothing is done
with the rows, but for `group_by`: a sum by group over two columns of Parquet, by Polars, of what `mini_batch_format:
polars` hands over, beside Polars' own scan with one thread.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pandas as pd

from benchmarks import Size
from benchmarks.measure import Spread
from benchmarks.table import table
from benchmarks.table_looks import record_of
from parallelrun_worker.tables.arrow_rows import ArrowRows
from parallelrun_worker.tables.table import Table

_RANGE_BYTES: Final = 10 << 20
_STEPS: Final[dict[str, Any]] = {
    "plain.csv": "read_delimited", "rows.parquet": "read_parquet", "rows.jsonl": "read_json_lines"
}  # fmt: skip
_NAMES: Final = {"plain.csv": "csv", "rows.parquet": "parquet", "rows.jsonl": "jsonl"}
_GROUPED: Final = [{"keep_columns": ["flag", "value"]}]

Read = Callable[[], object]


def _seconds(read: Read) -> float:
    began = time.process_time()
    read()
    return time.process_time() - began


def _in_turn(reads: dict[str, Read], rounds: int) -> dict[str, list[float]]:
    """The CPU seconds of each, round by round."""
    for read in reads.values():
        read()
    took: dict[str, list[float]] = {name: [] for name in reads}
    for _ in range(rounds):
        for name, read in reads.items():
            took[name].append(_seconds(read))
    return took


def _ratio(took: dict[str, list[float]], loop: str, name: str) -> Spread:
    return Spread.of(theirs / mine for theirs, mine in zip(took[loop], took[name], strict=True))


def _reads(path: Path, steps: list[Any], schema: str) -> dict[str, Read]:
    """The reading of one range, for pandas and for Arrow."""
    whole = Table(record_of(path, *steps), schema)
    for_arrow = ArrowRows(Table(record_of(path, *steps) | {"mini_batch_format": "arrow"}, schema), "arrow")
    pieces = [(str(path), 0, -1 if path.suffix == ".parquet" else _RANGE_BYTES, False, -1)]
    return {"ours": lambda: whole.read(pieces), "arrow": lambda: for_arrow.read(pieces)}


def _loops(path: Path) -> dict[str, Read]:
    """Bare loops over the same range, by pandas and by pyarrow."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return {
            "pandas": lambda: pd.read_parquet(path),
            "pyarrow": lambda: pq.ParquetFile(path).read(use_threads=False),
        }
    with path.open("rb") as file:
        content = file.read(_RANGE_BYTES)
        content += file.readline()
    if path.suffix == ".csv":
        options = pa.csv.ReadOptions(use_threads=False)
        return {
            "pandas": lambda: pd.read_csv(io.BytesIO(content)),
            "pyarrow": lambda: pa.csv.read_csv(pa.BufferReader(content), read_options=options),
        }
    json_options = pa.json.ReadOptions(use_threads=False)
    return {
        "pandas": lambda: pd.read_json(io.BytesIO(content), lines=True),
        "pyarrow": lambda: pa.json.read_json(pa.BufferReader(content), read_options=json_options).to_pandas(),
    }


def _group_by(path: Path, schema: str, rounds: int) -> Spread:
    import polars

    record = record_of(path, "read_parquet", *_GROUPED) | {"mini_batch_format": "polars"}
    rows = ArrowRows(Table(record, schema), "polars")
    pieces = [(str(path), 0, -1, False, -1)]
    value = polars.col("value").sum()
    took = _in_turn(
        {
            "ours": lambda: rows.read(pieces).group_by("flag").agg(value),
            "scan": lambda: polars.scan_parquet(path).group_by("flag").agg(value).collect(engine="streaming"),
        },
        rounds,
    )
    return _ratio(took, "scan", "ours")


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # as many as a worker has, before Polars is imported
    size_bytes, rounds = {"tiny": (2 << 20, 1), "quick": (50 << 20, 15), "full": (200 << 20, 51)}[size]
    last: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="parallelrun-arrow-") as folder:
        for kind, step in _STEPS.items():
            path, name = table(kind, size_bytes) / kind, _NAMES[kind]
            took = _in_turn({**_reads(path, [step], f"{folder}/{name}.json"), **_loops(path)}, rounds)
            print(f"  {name}: {json.dumps({each: round(1000 * Spread.of(s).median) for each, s in took.items()})} ms")
            last |= {
                **_ratio(took, "pandas", "ours").fields(f"{name}_pandas_to_pandas"),
                **_ratio(took, "pandas", "arrow").fields(f"{name}_arrow_to_pandas"),
                **_ratio(took, "pyarrow", "arrow").fields(f"{name}_arrow_to_pyarrow"),
            }
        if find_spec("polars") is not None:
            last |= _group_by(table("rows.parquet", size_bytes) / "rows.parquet", f"{folder}/g.json", rounds).fields(
                "group_by_to_polars"
            )
    return last
