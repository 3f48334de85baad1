"""Waits for permits of limits: measured in the worker, added up, and said in the same words everywhere."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from parallelrun.progress.text import describe
from parallelrun_agent.workers.answers import parse_waited
from parallelrun_core.adviser.evidence import MeasuredSettings
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.decided import Decided
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_worker import frames
from parallelrun_worker.script_api.permits import Stopwatch
from tests.unit.adviser.jobs import advice, ids, went

WAITING = Progress(
    scheduled=10, listing_done=True, done=4, waits_s={"search": 0.2, "openai": 83.0, "db": 5.0}, waits_of_s=100.0
)


def done(mini_batch: int, elapsed_s: float, **waits: float) -> Outcome:
    return Outcome(
        mini_batch,
        0,
        "done",
        "s/1",
        1,
        "node1",
        "process000",
        "",
        0,
        0,
        0,
        1,
        1,
        0.0,
        elapsed_s,
        1.0,
        -1.0,
        waits=waits,
    )


def test_waits_of_several_calls_at_once_count_once_and_each_limit_by_itself() -> None:
    stopwatch = Stopwatch()
    stopwatch.begin("openai")
    stopwatch.begin("search")
    stopwatch.begin("openai")
    time.sleep(0.02)
    for limit in ("openai", "openai", "search"):
        stopwatch.end(limit)
    waited_s = stopwatch.seconds()
    assert waited_s >= 0.02
    assert {name: 0.02 <= seconds <= waited_s for name, seconds in stopwatch.by_limit().items()} == {
        "openai": True,
        "search": True,
    }


def test_waits_frame_that_a_worker_does_not_write_is_refused() -> None:
    head = frames.MINI_BATCH.pack(7)
    assert parse_waited(head + b'{"waited_s": 2.5, "limits": {"openai": 2.0}}') == (7, 2.5, {"openai": 2.0})
    for payload in (b"", head, head + b"[]", head + b'{"waited_s": "long", "limits": {}}'):
        with pytest.raises(CorruptLog, match="not the waits of a mini-batch"):
            parse_waited(payload)


def test_waits_are_added_up_once_for_each_decision_and_taken_out_with_it() -> None:
    decided = Decided()
    first = done(0, 10.0, openai=8.0)
    for outcome in (first, first, done(1, 10.0, openai=2.0, search=1.0), done(2, 50.0)):
        decided.accept(outcome)
    assert (decided.waits_s, decided.waits_of_s) == ({"openai": 10.0, "search": 1.0}, 20.0)
    decided.withdraw(msgspec.structs.replace(first, status="lost"))
    assert (decided.waits_s, decided.waits_of_s) == ({"openai": 2.0, "search": 1.0}, 10.0)


def test_waits_are_said_with_what_follows_from_them() -> None:
    said = describe("processing", WAITING, items_per_s=None, left_s=None)
    assert "waits for openai 83 %, db 5 %: more nodes won't help" in said
    assert Progress().waits_text() == Progress(waits_s={"openai": 0.0}).waits_text() == ""


def test_waits_make_the_adviser_name_the_limit_in_place_of_nodes_and_workers() -> None:
    binds: dict[str, Any] = {"waits_s": {"openai": 8000.0}, "waits_of_s": 10_000.0}
    several = MeasuredSettings(size=1, has_several_in_flight=True)
    assert ids(went([300.0] * 3, items=100, settings=MeasuredSettings(size=100)))[0] == "too_few_mini_batches"
    assert ids(went([300.0] * 3, items=100, settings=several)) == []
    assert ids(went([300.0] * 3, items=100, settings=several, **binds)) == ["limit_binds"]
    [finding] = advice(went([300.0] * 3, items=100, settings=several, **binds)).findings
    assert (finding.id, finding.title) == (
        "limit_binds",
        "Mini-batches wait for openai 80 % of their time: more nodes won't help.",
    )


def test_budget_that_is_used_up_or_soon_will_be_is_what_the_adviser_says_first() -> None:
    several = MeasuredSettings(size=1, has_several_in_flight=True)
    for spent_usd, is_running, title in (
        (39.0, True, ""),
        (41.0, True, "82 % of the budget of $50.00 is spent."),
        (41.0, False, ""),
        (50.5, False, "The budget of $50.00 is used up."),
    ):
        job = went([1.0] * 30, settings=several, spent_usd=spent_usd, budget_usd=50.0, is_running=is_running)
        assert [each.title for each in advice(job).findings if each.id == "budget"] == ([title] if title else [])
        assert ids(job)[:1] == (["budget"] if title else [])
    assert "budget" not in ids(went([1.0] * 30, spent_usd=50.0)), "it has none"
