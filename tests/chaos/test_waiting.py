"""A job that waits for a service, whose roles are all killed: each row once, and nothing remembered is paid twice."""

from __future__ import annotations

import pytest

from tests.chaos import waiting

pytestmark = pytest.mark.chaos


def test_several_in_flight_have_each_row_once_and_call_nothing_remembered_again() -> None:
    report = waiting.kills(seed=1)
    assert report.finding.is_clean, report.finding
    assert report.paid_twice == 0
    assert report.faults["kills"] >= 10, "the test hardly killed anything"
    assert report.faults["service_kills"] >= 1
