"""Revisions for tests that care about one or two of their fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from parallelrun_core.folder.records import JobRecord
from parallelrun_core.schedules.policy import FireOutcome
from parallelrun_core.schedules.records import FireRecord, Revision, rfc3339_of

MADE = datetime(2026, 11, 23, 4, 0, tzinfo=UTC)
HOURLY = {"type": "cron", "expression": "0 * * * *"}


def revision(number: int = 1, **fields: Any) -> Revision:
    """A schedule that is due every hour, unless told otherwise."""
    settings: dict[str, Any] = {
        "schedule_id": "one", "made": MADE.timestamp(), "at": MADE.timestamp(), "is_enabled": True,
        "trigger": HOURLY, "missed": "once", "may_overlap": False,
        "job": JobRecord(job_id="", submitted=0, code="c" * 64, spec={"name": "nightly"}),
    }  # fmt: skip
    return Revision(number=number, **{**settings, **fields})


def fire(due: datetime, **fields: Any) -> FireRecord:
    """A job that was made."""
    settings: dict[str, Any] = {
        "due": rfc3339_of(due), "at": (due + timedelta(seconds=1)).timestamp(), "outcome": FireOutcome.STARTED,
        "revision": 1,
        "job_id": "job_0123456789abcdefghjk",
    }  # fmt: skip
    return FireRecord(**{**settings, **fields})
