"""CPU time of `pandas.read_csv` for a table of very many columns and few rows ÷ that of reading it as a job does.

One process reads the same file in turn in both ways, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import data
from benchmarks.measure import Spread
from benchmarks.table_looks import record_of
from parallelrun_worker.tables.table import Table


def wide(columns: int, rounds: int, rows: int = 200) -> Spread:
    """The ratios; more than 1 is faster than pandas."""
    path = _file(columns, rows)
    with tempfile.TemporaryDirectory(prefix="parallelrun-wide-") as folder:
        table = Table(record_of(path, "read_delimited"), f"{folder}/schema.0.json")
        piece = (str(path), 0, path.stat().st_size, False, -1)
        table.read([piece])
        pairs = [(_seconds(lambda: pd.read_csv(path)), _seconds(lambda: table.read([piece]))) for _ in range(rounds)]
    return Spread.of(theirs / ours for theirs, ours in pairs)


def _file(columns: int, rows: int) -> Path:
    def write(path: Path) -> None:
        rng = np.random.default_rng(0)
        kinds = (
            rng.integers(0, 1000, rows), rng.random(rows).round(4), [f"t{number % 50}" for number in range(rows)],
            [f"2024-01-{1 + number % 28:02d}" for number in range(rows)],
        )  # fmt: skip
        pd.DataFrame({f"c{at}": kinds[at % len(kinds)] for at in range(columns)}).to_csv(path, index=False)

    return data.cached(f"table-wide-{columns}-{rows}.csv", write)


def _seconds(read: Callable[[], object]) -> float:
    began = time.process_time()
    read()
    return time.process_time() - began
