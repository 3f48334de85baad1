"""What the proofs about the nodes of a job find when a part of the mechanism is gone."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import pytest

from parallelrun_master.policy import placing
from tests.cluster import Cluster
from tests.integration import test_instance_count as counts
from tests.twins.sabotage import expect_failure, without
from tests.unit.master import test_node_watch as watches
from tests.unit.master import test_placing as places
from tests.unit.master import test_stall_watch as stalls


@pytest.mark.integration
def test_a_node_that_works_for_a_job_of_others_is_found() -> None:
    with patch.object(counts, "Cluster", partial(Cluster, without="nodes.chosen")), expect_failure():
        counts.test_jobs_of_one_node_that_come_at_once_begin_nothing_elsewhere()


def test_nodes_that_are_assigned_after_the_first_mini_batch_is_published_are_found() -> None:
    with without("nodes.first"), expect_failure():
        watches.test_jobs_that_ask_for_a_number_are_assigned_nodes_at_once()


def test_a_first_timeout_that_ends_with_publishing_is_found() -> None:
    with without("stall.first_run"), expect_failure():
        stalls.test_until_a_mini_batch_is_run_the_first_timeout_counts_whatever_is_published()


def test_a_timeout_that_runs_while_others_hold_the_slots_is_found() -> None:
    with without("stall.waits"), expect_failure():
        stalls.test_the_first_timeout_stands_still_while_no_node_has_a_place()


def test_nodes_that_are_chosen_whatever_room_they_have_are_found() -> None:
    with patch.object(placing.NodePlace, "free", 1), expect_failure():
        places.test_a_job_gets_the_freest_node_and_stays_there()
