"""The cost log: what nodes have spent is added up once, and known to later leaders."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.wire.costs import Spent
from parallelrun_master.ledger.cost_log import CostLog


def opened(folder: Path, term: int) -> CostLog:
    return CostLog(folder, term, on_damage=lambda damage: None)


def test_cost_that_is_reported_again_counts_once(tmp_path: Path) -> None:
    log = opened(tmp_path, 1)
    for spent in (Spent("a", 5), Spent("b", 20), Spent("a", 30), Spent("a", 30), Spent("a", 5)):
        log.add(spent)
    assert log.usd == 50 / 10**9


def test_costs_are_what_earlier_leaders_have_made_durable(tmp_path: Path) -> None:
    first = opened(tmp_path, 1)
    first.add(Spent("a", 10))
    first.add(Spent("b", 7))
    first.sync()
    first.add(Spent("a", 11))
    second = opened(tmp_path, 2)
    assert second.usd == 17 / 10**9, "the last report was not durable: Redis has it"
    second.add(Spent("a", 12))
    second.sync()
    first.sync()  # a leader that was paused, and whose term is over
    assert opened(tmp_path, 3).usd == 19 / 10**9
    first.close()
    second.close()


def test_costs_of_a_job_that_reports_none_need_no_file(tmp_path: Path) -> None:
    log = opened(tmp_path, 1)
    log.sync()
    log.close()
    assert (log.usd, [*tmp_path.iterdir()]) == (0, [])
