"""What becomes of a time at which a schedule was due."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from parallelrun_core.schedules.policy import LATE, FireOutcome, decide
from tests.unit.schedules.factories import MADE, revision

HOUR = timedelta(hours=1)


def decided(since: timedelta, now: timedelta, **fields: Any) -> tuple[timedelta, FireOutcome, int] | None:
    settings: dict[str, Any] = {"missed": "once", "is_running": False, "may_overlap": False} | fields
    decision = decide(revision().due(), since=MADE + since, now=MADE + now, **settings)
    return None if decision is None else (decision.due - MADE, decision.outcome, decision.passed_over)


@pytest.mark.parametrize(
    "since, now, fields, expected",
    [
        (0 * HOUR, 0.9 * HOUR, {}, None),
        (0 * HOUR, 1 * HOUR, {}, (HOUR, FireOutcome.STARTED, 0)),
        (1 * HOUR, 1.9 * HOUR, {}, None),
        (0 * HOUR, 1.5 * HOUR, {}, (HOUR, FireOutcome.STARTED, 0)),
        (0 * HOUR, 10.5 * HOUR, {}, (10 * HOUR, FireOutcome.STARTED, 9)),
        (0 * HOUR, 9999.5 * HOUR, {}, (9999 * HOUR, FireOutcome.STARTED, 1000)),
        (0 * HOUR, 10.5 * HOUR, {"missed": "skip"}, (10 * HOUR, FireOutcome.MISSED, 9)),
        (0 * HOUR, HOUR + LATE, {"missed": "skip"}, (HOUR, FireOutcome.STARTED, 0)),
        (0 * HOUR, 1 * HOUR, {"is_running": True}, (HOUR, FireOutcome.SKIPPED, 0)),
        (0 * HOUR, 1 * HOUR, {"is_running": True, "may_overlap": True}, (HOUR, FireOutcome.STARTED, 0)),
        (5 * HOUR, 1 * HOUR, {}, None),
    ],
)
def test_what_becomes_of_a_time(
    since: timedelta, now: timedelta, fields: dict[str, Any], expected: tuple[timedelta, FireOutcome, int] | None
) -> None:
    assert decided(since, now, **fields) == expected
