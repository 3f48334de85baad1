"""What the proofs of isolation find when one of its rules is broken."""

from __future__ import annotations

from parallelrun_agent.policy.isolation import Isolation
from tests.twins.sabotage import always, expect_failure, replaced
from tests.unit.agent import test_isolation as isolation
from tests.unit.worker import test_apart as apart


def test_isolation_that_forgets_which_items_are_lost_is_found() -> None:
    with replaced("parallelrun_agent.policy.isolation:_missing", always([])), expect_failure():
        isolation.test_isolation_loses_the_guilty_items_alone()


def test_isolation_that_counts_rows_of_a_worker_that_has_died_is_found() -> None:
    def keeps_them(self: Isolation, kind: int) -> bytes:
        return b'{"kind":%d,"failed":[[4,2]],"calls":62}\n' % kind

    with replaced("parallelrun_agent.policy.isolation:Isolation.asked", keeps_them), expect_failure():
        isolation.test_isolation_goes_on_after_a_death_without_the_rows_of_the_dead()


def test_isolation_that_takes_every_half_for_good_is_found() -> None:
    with replaced("tests.unit.worker.test_apart:Script.call", always([1])), expect_failure():
        apart.test_apart_needs_about_two_calls_for_each_halving_of_one_guilty_item()


def test_isolation_that_calls_run_with_items_that_are_not_there_is_found() -> None:
    with replaced("parallelrun_worker.execution.isolation:Part.has", always(False)), expect_failure():
        apart.test_apart_calls_no_part_with_an_item_that_is_known_to_fail()
