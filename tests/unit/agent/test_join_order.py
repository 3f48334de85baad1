"""Which of several nodes joins a small job, and when others follow."""

from __future__ import annotations

from parallelrun_agent.policy.join_order import JoinOrder


def test_join_order_a_small_job_is_asked_for_and_left_to_whoever_was_faster() -> None:
    order = JoinOrder(slots=2)
    assert order.decide("job", ready=2, sessions=0, free_slots=2, now=1.0) == "ask"
    order.left_to_another("job")
    assert order.decide("job", ready=2, sessions=0, free_slots=2, now=1.1) == "wait"
    assert order.decide("job", ready=2, sessions=1, free_slots=2, now=1.9) == "wait"
    assert order.decide("job", ready=2, sessions=1, free_slots=2, now=2.0) == "join", "they still wait"


def test_join_order_a_large_job_gets_all_nodes_at_once() -> None:
    order = JoinOrder(slots=2)
    assert order.decide("job", ready=3, sessions=0, free_slots=2, now=1.0) == "join"
    assert order.decide("other", ready=5, sessions=2, free_slots=0, now=1.0) == "join"
    assert order.decide("third", ready=4, sessions=2, free_slots=2, now=1.0) == "wait"


def test_join_order_a_node_that_was_lost_is_replaced_at_once() -> None:
    order = JoinOrder(slots=2)
    order.left_to_another("job")
    assert order.decide("job", ready=0, sessions=1, free_slots=2, now=1.0) == "wait"
    assert order.decide("job", ready=2, sessions=0, free_slots=2, now=9.0) == "join"


def test_join_order_a_node_without_a_free_slot_leaves_a_job_to_others_for_a_moment() -> None:
    order = JoinOrder(slots=2)
    assert order.decide("job", ready=1, sessions=0, free_slots=0, now=1.0) == "wait"
    assert order.decide("job", ready=1, sessions=0, free_slots=0, now=1.25) == "ask"
    order.left_to_another("job")
    assert order.decide("job", ready=1, sessions=1, free_slots=0, now=2.9) == "wait"
    assert order.decide("job", ready=1, sessions=1, free_slots=0, now=3.0) == "join"


def test_join_order_a_job_that_gets_its_mini_batches_a_few_at_a_time_gets_all_nodes() -> None:
    order = JoinOrder(slots=2)
    assert order.decide("job", ready=0, sessions=1, free_slots=2, now=1.0) == "wait"
    assert order.decide("job", ready=1, sessions=1, free_slots=2, now=5.0) == "wait"
    assert order.decide("job", ready=0, sessions=1, free_slots=2, now=5.5) == "wait", "the other one has taken it"
    assert order.decide("job", ready=1, sessions=1, free_slots=2, now=6.0) == "join"
    order.keep_only([])
    assert order.decide("job", ready=1, sessions=1, free_slots=2, now=7.0) == "wait"
