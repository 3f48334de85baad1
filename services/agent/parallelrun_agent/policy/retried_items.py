"""Deliveries of mini-batches of which only some items are run again, as a user has asked. Pure, no I/O."""

from __future__ import annotations

import msgspec

from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.isolation import Isolation
from parallelrun_core.errors import CorruptLog
from parallelrun_core.wire.leasing import Delivery
from parallelrun_core.wire.message import retried_of


def assignment_of(delivery: Delivery, *, can_isolate: bool) -> Assignment:
    """Return what is to be done for a delivery: all items are run where the job's items can't be run apart."""
    try:
        message, items = retried_of(delivery.message)
    except CorruptLog:  # reported where it is handed out
        return Assignment(delivery)
    if items is None:
        return Assignment(delivery)
    assignment = Assignment(msgspec.structs.replace(delivery, message=message))
    if can_isolate:
        assignment.isolation = Isolation.again(items)
    return assignment
