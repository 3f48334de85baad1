"""A leader's books with all that belongs to them, and a job spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun_core.masking import Mask
from parallelrun_core.spec import JobSpec
from parallelrun_master.ledger import Ledger
from parallelrun_master.policy.error_groups import ErrorGroups
from parallelrun_master.reports.summaries import Summaries
from parallelrun_master.reports.tries import TryReport


def ledger(folder: Path, queue: Any, term: int, *, generation: int = 0) -> Ledger:
    """The books of a term that begins."""
    logs, mask = folder / "logs", Mask({})
    return Ledger(folder, queue, term, TryReport(logs, mask, Summaries(logs)), ErrorGroups(mask), generation=generation)


def spec(**fields: Any) -> JobSpec:
    """A job's, with defaults where none are given."""
    return JobSpec.parse({"entry_script": "e.py", "inputs": "/in", **fields})
