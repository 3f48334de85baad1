"""Traces without what makes them certain and harmless: the proofs must fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration import test_traces as ends
from tests.twins import sabotage
from tests.twins.sabotage import expect_failure
from tests.unit.master import test_traces as traces


@pytest.mark.integration
def test_a_trace_that_masters_forget_is_found(tmp_path: Path) -> None:
    with expect_failure():
        ends.trace_although_all_die(tmp_path, within_s=5, without="traces.owed")


def test_secrets_in_a_trace_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sabotage.without("traces.masked"), expect_failure():
        traces.test_nothing_secret_is_in_a_trace(tmp_path, monkeypatch)
