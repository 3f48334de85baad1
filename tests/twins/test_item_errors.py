"""What the proof about items that fail alone finds when a part of the mechanism is gone."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from parallelrun_agent.policy.in_flight import InFlight
from tests.twins.sabotage import expect_failure, nothing
from tests.unit.agent import test_item_errors as items


def test_items_that_nobody_names_are_found() -> None:
    with patch.object(InFlight, "items_failed", nothing), expect_failure():
        items.test_item_errors_are_recorded_with_the_try_that_is_done()


def test_items_of_a_mini_batch_that_is_not_run_are_found() -> None:
    with patch.object(InFlight, "items_failed", nothing), pytest.raises(pytest.fail.Exception):
        items.test_item_errors_of_another_mini_batch_are_not_believed()
