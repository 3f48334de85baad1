"""A leader's books and reports, and what goes into them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec

from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Outcome
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.reports.summaries import Summaries
from parallelrun_master.reports.tries import TryReport
from tests.unit.core.factories import outcome

CSV = "sys/job_report/processed_mini-batches.csv"


def ledger(folder: Path, queue: Any, term: int, *, generation: int = 0) -> Ledger:
    """The books of a term that begins."""
    logs, mask = folder / "logs", Mask({})
    return Ledger(folder, queue, term, TryReport(logs, mask, Summaries(logs)), ErrorGroups(mask), generation=generation)


def spec(**fields: Any) -> JobSpec:
    """A job's, with defaults where none are given."""
    return JobSpec.parse({"entry_script": "e.py", "inputs": "/in", **fields})


def try_report(logs: Path, **secrets: str) -> TryReport:
    """The report of a job with these values in its environment."""
    return TryReport(logs, Mask({"environment_variables": secrets}), Summaries(logs))


def rows_of(logs: Path, name: str = CSV) -> list[dict[str, str]]:
    """The rows of a table below logs/."""
    with (logs / name).open(newline="") as file:
        return list(csv.DictReader(file))


def a_try(mini_batch: int, tries: int = 1, **changes: object) -> Outcome:
    """One that succeeded, unless told otherwise."""
    made = msgspec.structs.replace(outcome(mini_batch), tries=tries, node="n", process="process001", started=1e9 + 0.25)
    return msgspec.structs.replace(made, **changes)
