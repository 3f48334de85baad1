"""What the proofs of the page find when one place counts in another way than the others, or a drained node stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from parallelrun_api.waiting import conditions
from parallelrun_core.answers.waiting import RunCondition
from parallelrun_core.tries.columns import Columns
from parallelrun_core.tries.summary import Summary
from tests.integration.queue import test_registry as registry
from tests.integration.queue.job_on_redis import JobOnRedis
from tests.twins.sabotage import altered, always, expect_failure, replaced
from tests.unit.api import test_tries as tries
from tests.unit.api import test_waiting as waiting
from tests.unit.master import test_pace as paces

if TYPE_CHECKING:
    from redis import Redis


class _RowsForItems:
    """Tries whose items are only those that have a row."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.names, self.count = columns.names, columns.count

    def __getitem__(self, name: str) -> Any:
        values = self._columns[name]
        return np.maximum(0, values.astype("i8") - self._columns["failed_items"]) if name == "items" else values


def test_a_curve_of_rows_beside_a_tile_of_items_is_found(tmp_path: Path) -> None:
    add: Any = Summary.add

    def rows_alone(self: Summary, columns: Columns, first: int) -> None:
        add(self, _RowsForItems(columns), first)

    with patch.object(Summary, "add", rows_alone), expect_failure():
        tries.test_throughput_and_progress_count_the_same_items_of_a_job_that_sums_up(tmp_path)


def test_a_time_left_that_grows_in_the_middle_of_mini_batches_is_found() -> None:
    with replaced("parallelrun_core.wire.pace:_usual_gap_s", always(0.0)), expect_failure():
        paces.test_time_left_stands_still_while_all_workers_are_in_the_middle_of_a_mini_batch()


def test_a_pause_by_an_admin_that_anybody_is_offered_to_end_is_found() -> None:
    blocks = RunCondition(name="paused", state="blocks")
    with patch.object(conditions, "_CHECKS", (always(blocks),)), expect_failure():
        waiting.test_a_pause_by_an_admin_needs_one_and_only_then()


@pytest.mark.integration
@pytest.mark.parametrize(
    "old, new",
    [
        ("leave = redis.call('SISMEMBER', KEYS[4], ARGV[4])", "leave = 0"),
        ("redis.call('SREM', KEYS[4], ARGV[4])", ""),
    ],
    ids=["is not asked", "is asked for ever"],
)
def test_a_drained_node_that_does_not_leave_is_found(redis: Redis, old: str, new: str) -> None:
    with altered("beat", old, new), expect_failure():
        registry.test_a_drained_node_is_asked_to_leave_until_it_has_left(JobOnRedis(redis))


@pytest.mark.integration
def test_a_killed_node_that_stays_drained_is_found(redis: Redis) -> None:
    with altered("beat", "if before ~= '' and before ~= ARGV[4]", "if false"), expect_failure():
        registry.test_a_drained_node_that_was_killed_works_when_it_comes_back(JobOnRedis(redis))
