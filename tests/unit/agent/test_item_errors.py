"""Items for which run() has returned an ItemError, on their way from a worker to the record of a try."""

from __future__ import annotations

import pytest

from parallelrun_agent.policy.commands import Commit
from parallelrun_agent.policy.outcomes import WorkerAnswer
from parallelrun_core.wire.outcome import Failure, LostItems
from tests.unit.agent.test_machine import at_work, take

LOST = [LostItems(1, 2, Failure("RUN_EXCEPTION", "ItemError: no text"))]


def test_item_errors_are_recorded_with_the_try_that_is_done() -> None:
    node, worker = at_work(5)
    worker.in_flight.items_failed(5, LOST)
    node.answered(worker, WorkerAnswer(5, items=4, rows=2), 101.0)
    (commit,) = take(node, Commit)
    assert (commit.outcome.status, commit.outcome.lost, commit.outcome.items_lost) == ("done", tuple(LOST), 2)


def test_item_errors_of_another_mini_batch_are_not_believed() -> None:
    _, worker = at_work(5)
    with pytest.raises(LookupError, match="the worker lost items of mini-batch 6, which is not the first in flight"):
        worker.in_flight.items_failed(6, LOST)
