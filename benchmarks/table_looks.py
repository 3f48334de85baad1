"""What it costs to look for values that would change: CPU time of reading a table with these looks ÷ without them.

One process reads the same range in turn as a job of our own form, and without the looks. Delimited text has a reader
without them, that of jobs of earlier releases, which had no rules for odd values. Earlier releases read lines of JSON
by another parser, so there the same reader goes without `has_changed_numbers`. Each ratio is of four readings in a row:
with, without, without, with. So whatever else the machine does, and what a reading leaves in caches and in the
allocator for the next one, meets both alike.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from unittest import mock

from benchmarks.measure import Spread
from parallelrun_core.intake.reading import read_job
from parallelrun_core.mltable.input_plan import InputPlan, as_json
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.spec.fields import MiniBatchSize
from parallelrun_master.planning.table_cutting import TableCutter
from parallelrun_worker.tables import json_by_arrow
from parallelrun_worker.tables.table import Table
from parallelrun_worker.tables.table_format import Piece

_SIZE: Final = "10mb"


def looks(path: Path, step: Any, rounds: int) -> Spread:
    """The ratios of one file, of whose first 10 MB each round reads all records, as a job's mini-batch does."""
    record = record_of(path, step)
    piece = _first_piece(path, step)
    is_json = record["kind"] == "json_lines"
    without = record if is_json else {**record, "read": {**record["read"], "has_exact_integers": False}}
    with tempfile.TemporaryDirectory(prefix="parallelrun-looks-") as folder:
        tables = [Table(each, f"{folder}/schema.0.json") for each in (record, without)]  # of the same types

        def ratio() -> float:
            before = _seconds(tables[0], piece)
            with mock.patch.object(json_by_arrow, "has_changed_numbers", return_value=False):
                without_looks = _seconds(tables[1], piece) + _seconds(tables[1], piece)
            return (before + _seconds(tables[0], piece)) / without_looks

        ratio()
        return Spread.of([ratio() for _ in range(rounds)])


def record_of(path: Path, *steps: Any) -> dict[str, Any]:
    """Return the plan of a table of this file with these steps, as a worker gets it."""
    record: dict[str, Any] = json.loads(as_json([_plan_of(path, *steps)]))[0]
    return record


def _plan_of(path: Path, *steps: Any) -> InputPlan:
    document = {"entry_script": "e.py", "inputs": {"rows": {"path": str(path), "transformations": steps}}}
    (plan,) = plan_inputs(read_job(document).job)
    plan.sample = [str(path)]
    return plan


def _first_piece(path: Path, step: Any) -> Piece:
    cutter = TableCutter(_plan_of(path, step), MiniBatchSize.parse(_SIZE))
    piece = next(filter(None, cutter.pieces([os.fsencode(path)])))
    return str(path), *piece.rest


def _seconds(table: Table, piece: Piece) -> float:
    began = time.process_time()
    table.read([piece])
    return time.process_time() - began
