"""A pipeline whose roles are all killed: each step's rows once, no step twice, and its end is right."""

from __future__ import annotations

import pytest

from tests.chaos import pipelines

pytestmark = pytest.mark.chaos


def test_each_step_runs_once_while_every_role_is_killed() -> None:
    report = pipelines.kills(seed=1)
    assert report.problems == []
    assert report.faults["kills"] >= 10, "the test hardly killed anything"
    assert report.faults["redis_restarts"] == 2
