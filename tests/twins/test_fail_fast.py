"""What the proofs of `fail_fast` find when one of its rules is broken."""

from __future__ import annotations

from parallelrun_agent.policy.apart_queue import ApartQueue
from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_core.wire.outcome import Outcome
from tests.twins.sabotage import always, expect_failure, replaced
from tests.unit.agent import test_early_failures as early_failures
from tests.unit.agent import test_isolation as isolation
from tests.unit.core.factories import failed
from tests.unit.master import test_fail_fast as fail_fast

ADD = ApartQueue.add


def test_a_job_that_is_given_up_for_the_beginning_of_its_input_is_found() -> None:
    sabotage = replaced("parallelrun_master.policy.fail_fast:FailFast._is_everywhere", always(True))
    with sabotage, expect_failure():
        fail_fast.test_fail_fast_goes_on_if_the_end_fails_otherwise(failed(fail_fast.LAST, items=5))


def test_items_that_are_run_apart_before_the_leader_has_looked_are_found() -> None:
    def at_once(queue: ApartQueue, assignment: Assignment, outcome: Outcome) -> bool:
        ADD(queue, assignment, outcome)
        queue.return_to(queue.clear())
        return False

    with replaced("parallelrun_agent.policy.apart_queue:ApartQueue.add", at_once), expect_failure():
        isolation.test_isolation_waits_until_the_leader_has_looked_whether_all_fails_alike()


def test_a_node_that_runs_all_of_it_before_the_leader_has_looked_is_found() -> None:
    sabotage = replaced("parallelrun_agent.policy.early_failures:EarlyFailures.pauses", always(False))
    with sabotage, expect_failure():
        early_failures.test_early_failures_begin_one_by_one_with_pauses_until_the_leader_has_looked()
