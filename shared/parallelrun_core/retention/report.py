"""The report of a sweep: `retention/last.json`, and the answer to what one would do."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.retention import RemovedKind, RuleValue, Sweep
from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_durably
from parallelrun_core.errors import CorruptLog, NewerSchema
from parallelrun_core.layout import PRIVATE_FILE, retention_of

_LAST: Final = "last.json"


class SweepReport(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of a sweep, or of a plan for one."""

    schema: int = SCHEMA
    at: float
    rules: dict[str, RuleValue]
    removed: dict[str, RemovedKind] = {}
    """By kind: jobs, parts, logs, snapshots, asset_files, asset_versions, steps, uploads, blobs."""
    jobs: list[str] = []
    """The jobs among them."""
    notices: dict[str, float] = {}
    """Jobs that a rule will remove, each with the time of that."""
    references: dict[str, str] = {}
    """Jobs that would go, each with what refers to it."""
    problem: str = ""
    """Why a limit can't be kept."""
    not_removed: int = 0
    """Folders that were set aside, and can't be removed by this process."""
    took_s: float = 0.0
    is_applied: bool = True
    """False for a plan that was only made."""


def write_report(root: Path, report: SweepReport) -> None:
    """Write down, durably, what a sweep has done. Raises OSError."""
    replace_durably(retention_of(root) / _LAST, encode(report), mode=PRIVATE_FILE)


def last_report(root: Path) -> SweepReport | None:
    """The report of the last sweep; None: there was none, or it can't be read."""
    path = retention_of(root) / _LAST
    try:
        return decode(path.read_bytes(), SweepReport, path)
    except (OSError, CorruptLog, NewerSchema):
        return None


def sweep_of(report: SweepReport) -> Sweep:
    """The report as the API answers it."""
    fields = {name: getattr(report, name) for name in Sweep.__struct_fields__}
    notices = {job_id: rfc3339(at) for job_id, at in report.notices.items()}
    return Sweep(**{**fields, "at": rfc3339(report.at), "notices": notices})
