"""A case as a job reads it: listed and cut by the code of a leader, read by that of a worker. No processes between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.intake.reading import read_job
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.message import DescribedMiniBatch, decode, described_of
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput
from parallelrun_worker.tables.arrow_rows import ArrowRows
from parallelrun_worker.tables.data_warnings import DataWarnings
from parallelrun_worker.tables.table import Table

Row = dict[str, Any]


@dataclass
class Outcome:
    """What a job has of its files."""

    rows: list[Row] = field(default_factory=list)
    """Those that run() would get, in order."""
    refused: list[str] = field(default_factory=list)
    """Messages of mini-batches that fail, or of the whole job."""
    refused_files: set[str] = field(default_factory=set)
    """Names of the files of those mini-batches; empty if the whole job is refused."""
    is_job_refused: bool = False
    warnings: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Errors that no reader raises on purpose."""


def own_job(data: Path, step: dict[str, Any], size: str) -> JobSpec:
    """A job of our own form."""
    inputs = {"data": {"path": str(data), "transformations": [step]}}
    return read_job({"entry_script": "e.py", "inputs": inputs, "mini_batch_size": size}, folder=data).job


def azure_job(data: Path, step: dict[str, Any], size: str) -> JobSpec:
    """The same as a document of Azure ML, with an MLTable file beside the data."""
    document = {
        "type": "mltable", "paths": [{"folder": "."}], "transformations": [step],
    }  # fmt: skip
    (data / "MLTable").write_text(json.dumps(document))
    job = {
        "type": "parallel",
        "inputs": {"data": {"path": str(data), "type": "mltable"}},
        "outputs": {"rows": {"type": "uri_file"}},
        "input_data": "${{inputs.data}}",
        "mini_batch_size": size,
        "task": {
            "type": "run_function",
            "code": ".",
            "entry_script": "e.py",
            "environment": "azureml:any@latest",
            "append_row_to": "${{outputs.rows}}",
        },
    }
    return read_job(job, folder=data).job


def outcome_of(spec: JobSpec, folder: Path, *, is_arrow: bool = False, is_backwards: bool = False) -> Outcome:
    """List, cut and read the input of a job, whose folder this is to be.

    Args:
        is_arrow: rows are those of Arrow tables, with Python's own values.
        is_backwards: the last mini-batch is read first, as a worker may that begins while others are at work.
    """
    outcome = Outcome()
    folder.mkdir(parents=True)
    found: list[DataWarning] = []
    pieces: list[DescribedMiniBatch] = []
    try:
        for cut in InputCuts(folder, spec, KnownInput(), warn=found.append):
            if cut is not None:
                pieces.append(described_of(decode(cut.raw)))
    except (ParallelRunError, OSError) as error:
        outcome.refused.append(_words(error))
        outcome.is_job_refused = True
        return outcome
    table = _Tables(folder, is_arrow=is_arrow)
    read: list[list[Row]] = []
    for described in reversed(pieces) if is_backwards else pieces:
        files = {os.fsdecode(piece.path) for piece in described.pieces}
        try:
            read.append(list(table.rows(described)))
        except (ValueError, OSError) as error:
            outcome.refused.append(str(error))
            outcome.refused_files |= {os.path.basename(file) for file in files}
        except Exception as error:  # a worker doesn't take it for the file's fault
            outcome.crashes.append(f"{type(error).__name__}: {error}")
    outcome.rows = [row for rows in (reversed(read) if is_backwards else read) for row in rows]
    outcome.warnings = [each.in_words() for each in found] + table.warnings()
    return outcome


def _words(error: Exception) -> str:
    problems = getattr(error, "problems", ())
    return " ".join([str(error), *(f"{each.message} {each.hint}" for each in problems)])


class _Tables:
    """The tables of a job, as one worker reads them."""

    def __init__(self, folder: Path, *, is_arrow: bool) -> None:
        self._is_arrow = is_arrow
        records = json.loads(Layout(folder).inputs.read_bytes()) if load_plans(folder) else []
        self._found = DataWarnings()
        form = "arrow" if is_arrow else "pandas"
        self._tables = [
            Table({**record, "mini_batch_format": form}, str(Layout(folder).schema(number)), self._found)
            for number, record in enumerate(records)
        ]

    def rows(self, described: DescribedMiniBatch) -> Iterator[Row]:
        pieces = [(os.fsdecode(piece.path), *piece.rest) for piece in described.pieces]
        if self._is_arrow:
            rows: list[Row] = ArrowRows(self._tables[described.input], "arrow").read(pieces).to_pylist()
            return iter(rows)
        frame = self._tables[described.input].read(pieces)
        names = list(frame.columns)
        return (dict(zip(names, row, strict=True)) for row in zip(*(frame[name] for name in names), strict=True))

    def warnings(self) -> list[str]:
        return [DataWarning(*each).in_words() for each in json.loads(self._found.take())]
