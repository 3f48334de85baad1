"""What the proofs about several mini-batches in flight find when a part of the mechanism is gone."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from parallelrun_agent.policy.concurrent import Concurrency, ConcurrentInFlight
from parallelrun_agent.policy.deliveries import Deliveries
from parallelrun_agent.policy.in_flight import InFlight
from tests.twins.sabotage import always, expect_failure, nothing
from tests.unit.agent import test_concurrent as concurrent
from tests.unit.agent import test_machine as machine


def test_a_charge_for_what_was_not_begun_is_found() -> None:
    with patch.object(ConcurrentInFlight, "take_back", always([])), expect_failure():
        concurrent.test_concurrent_mini_batches_that_were_begun_are_all_charged()


def test_a_death_of_which_only_the_oldest_is_charged_is_found() -> None:
    with patch.object(ConcurrentInFlight, "begun_of", InFlight.begun_of), expect_failure():
        concurrent.test_concurrent_mini_batches_that_were_begun_are_all_charged()


def test_what_was_in_a_dead_worker_and_is_not_suspect_is_found() -> None:
    with patch.object(Deliveries, "suspect", nothing), expect_failure():
        machine.test_a_failed_try_is_suspect_if_its_worker_has_died(dies=True)


@pytest.mark.parametrize("server", [40, 200])
def test_concurrency_that_never_grows_is_found(server: int) -> None:
    with patch.object(Concurrency, "_measure", nothing), expect_failure():
        concurrent.test_concurrency_grows_while_throughput_does_and_not_far_beyond(server)


def test_answers_that_must_come_in_order_are_found() -> None:
    in_order = patch.multiple(ConcurrentInFlight, answered=InFlight.answered, _of=InFlight._of)
    with in_order, pytest.raises(LookupError, match="not the first in flight"):
        concurrent.test_concurrent_answers_come_in_any_order_and_one_for_another_worker_is_none()


def test_second_deliveries_beside_the_first_in_one_worker_are_found() -> None:
    with patch.object(ConcurrentInFlight, "has", always(False)), pytest.raises((AssertionError, ValueError)):
        concurrent.test_concurrent_second_delivery_never_runs_beside_the_first()
