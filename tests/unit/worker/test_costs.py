"""The cost that a script reports: where its agent reads it, and what is no cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from mmap import mmap
from typing import Any

import pytest

from parallelrun.script import report_cost
from parallelrun_agent.workers.delivery_ring import DeliveryRing
from parallelrun_worker import frames
from parallelrun_worker.script_api.costs import CostCounter


@pytest.fixture
def ring() -> Iterator[DeliveryRing]:
    ring = DeliveryRing()
    yield ring
    ring.close()


def test_cost_of_all_threads_is_where_the_agent_reads_it(ring: DeliveryRing) -> None:
    counter = CostCounter(mmap(ring.fd, frames.RING_SIZE))
    with ThreadPoolExecutor(8) as threads:
        for _ in range(1000):
            threads.submit(counter.add, 0.0000001)
    assert ring.cost_nano() == 1000 * 100
    ring.put(b"x" * 1000)
    assert ring.cost_nano() == 1000 * 100, "payloads don't touch it"


def test_cost_is_only_added_up_where_a_script_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CostCounter, "process", CostCounter())
    assert report_cost(0.25) == 0.25
    assert report_cost(usd=1) == 1.25


def test_cost_that_is_no_amount_is_refused() -> None:
    wrong: list[Any] = [-0.01, float("nan"), float("inf"), "much", None, 10**7]
    for usd in wrong:
        with pytest.raises(ValueError, match="takes the cost of a call in US dollars"):
            CostCounter().add(usd)


def test_cost_that_a_forked_process_reports_is_refused_and_not_lost_in_silence() -> None:
    counter = CostCounter()
    child = os.fork()
    if not child:
        try:
            counter.add(1)
        except RuntimeError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
