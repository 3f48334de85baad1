"""The agents' one call: lease, commit, retry, return, leave. Every branch, on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from parallelrun_core.wire.leasing import MAX_REPORTS, Delivery, TurnReports
from parallelrun_core.wire.outcome import Status, decode_list, encode
from tests.integration.queue.job_on_redis import JobOnRedis, decided, message, retried, returned
from tests.unit.core.factories import failed

pytestmark = pytest.mark.integration

Report = Callable[[Iterable[Delivery]], TurnReports]


def test_a_job_that_redis_does_not_know_is_gone_and_leaves_nothing_behind(job: JobOnRedis) -> None:
    agent = job.agent()
    job.redis.delete(*job.keys.all())
    turn = agent.queue.turn("join", TurnReports(), 5)
    assert turn.state is None
    assert not turn.lost
    assert job.everything() == {}


def test_mini_batches_are_leased_in_order_each_once_with_what_was_published(job: JobOnRedis) -> None:
    job.publish(5)
    first, second = job.agent("a"), job.agent("b")
    one, two, three = first.lease(2), second.lease(2), first.lease(2)
    deliveries = [*one, *two, *three]
    assert [each.mini_batch for each in deliveries] == [0, 1, 2, 3, 4]
    assert [each.message for each in deliveries] == [message(number) for number in range(5)]
    assert {(each.tries, each.is_suspect) for each in deliveries} == {(0, False)}
    assert len({each.token for each in deliveries}) == 5
    assert job.leases() == {each.mini_batch: each.token for each in deliveries}
    assert all(each.token.startswith(f"{first.name}/") for each in (*one, *three))
    assert job.ready() == []
    assert job.leader.counts()[1] == 5


def test_a_turn_says_how_many_are_left(job: JobOnRedis) -> None:
    job.publish(5)
    agent = job.agent()
    assert agent.queue.turn("join", TurnReports(), 2).ready == 3
    assert agent.queue.turn("stay", TurnReports(), 0).ready == 3
    assert agent.queue.turn("stay", TurnReports(), 10).ready == 0
    assert agent.queue.turn("stay", TurnReports(), 10).deliveries == ()


def test_any_number_of_mini_batches_can_be_leased_at_once(job: JobOnRedis) -> None:
    """A node with 32 slots and a look-ahead of 256 may ask for as many as 8,192; none may get lost."""
    for _ in range(10):
        job.publish(1000)
    agent = job.agent()
    leased = [each.mini_batch for each in agent.lease(8192)]
    assert leased == list(range(len(leased)))
    assert leased
    assert sorted(job.leases()) == leased
    assert job.ready() == list(range(len(leased), 10_000))


def test_a_commit_becomes_an_outcome_and_frees_everything_else(job: JobOnRedis) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    turn = agent.queue.turn("stay", decided(held[:2]), 0)
    assert turn.refused == 0
    assert [(each.mini_batch, each.token) for each in job.outcomes()] == [(0, held[0].token), (1, held[1].token)]
    assert job.messages() == {2}
    assert job.leases() == {2: held[2].token}


def test_a_commit_and_the_next_lease_go_in_one_turn(job: JobOnRedis) -> None:
    job.publish(2)
    agent = job.agent()
    held = agent.lease(1)
    turn = agent.queue.turn("stay", decided(held), 1)
    assert [each.mini_batch for each in turn.deliveries] == [1]


@pytest.mark.parametrize("report", [decided, retried, returned])
def test_the_same_reports_twice_are_refused_the_second_time(job: JobOnRedis, report: Report) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    assert agent.queue.turn("stay", report(held), 0).refused == 0
    before = job.everything()
    assert agent.queue.turn("stay", report(held), 0).refused == 3
    assert job.everything() == before


@pytest.mark.parametrize("report", [decided, retried, returned])
def test_a_report_that_comes_twice_in_one_turn_counts_once(job: JobOnRedis, report: Report) -> None:
    job.publish(1)
    agent = job.agent()
    held = agent.lease(1)
    assert agent.queue.turn("stay", report([*held, *held]), 0).refused == 1
    assert len(job.ready()) + len([each for each in job.outcomes() if each.status == "done"]) == 1
    assert job.charged()["tries"].get(0, 0) <= 1


@pytest.mark.parametrize("report", [decided, retried, returned])
def test_an_old_token_is_refused_once_the_mini_batch_went_to_somebody_else(job: JobOnRedis, report: Report) -> None:
    job.publish(1)
    slow, quick = job.agent("slow"), job.agent("quick")
    old = slow.lease(1)
    slow.queue.turn("stay", returned(old), 0)
    new = quick.lease(1)
    assert new[0].token != old[0].token
    assert slow.queue.turn("stay", report(old), 0).refused == 1
    assert job.leases() == {0: new[0].token}
    assert job.outcomes() == []
    assert job.ready() == []


def test_a_late_answer_of_the_first_try_cannot_commit_as_the_second_on_the_same_node(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    first = agent.lease(1)
    second = agent.queue.turn("stay", retried(first), 1).deliveries
    assert second[0].mini_batch == 0
    assert agent.queue.turn("stay", decided(first), 0).refused == 1
    assert agent.queue.turn("stay", decided(second), 0).refused == 0
    assert [each.token for each in job.outcomes() if each.status == "done"] == [second[0].token]


@pytest.mark.parametrize("status", ["failed", "retry"])
@pytest.mark.parametrize("late", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_what_is_not_refused_is_told_with_the_seal_of_the_whole(
    job: JobOnRedis, status: Status, late: tuple[int, ...]
) -> None:
    """Records go together, and the leader takes those of them that didn't come too late; whatever is in them."""
    job.publish(3)
    agent = job.agent()
    held = agent.lease(3)
    reports = [
        (each.mini_batch, each.token, encode(failed(message='\n,["a\\n,["], \r\n[1]\n', status=status)))
        for each in held
    ]
    agent.queue.turn("stay", returned(held[place] for place in late), 0)
    both = (
        TurnReports(decided=reports)
        if status == "failed"
        else TurnReports(retries=[(*report, 1, 0, False) for report in reports])
    )
    assert agent.queue.turn("stay", both, 0).refused == len(late)
    expected = [decode_list(b"[" + record + b"]")[0] for mini_batch, _, record in reports if mini_batch not in late]
    assert job.outcomes() == expected
    told: Any = job.redis.xrange(job.keys.outcomes)
    whole = b"[" + b",".join(record for _, _, record in reports) + b"]"
    assert [fields[b"r"] for _, fields in told] == [whole][: len(expected)], "whole, as it was sealed"


@pytest.mark.parametrize("pair", [(0, 1), (1, 11)])
def test_somebody_elses_token_is_refused_for_another_mini_batch(job: JobOnRedis, pair: tuple[int, int]) -> None:
    job.publish(12)
    agent = job.agent()
    held = agent.lease(12)
    one, other = (held[place] for place in pair)
    mixed = [msgspec.structs.replace(one, token=other.token), msgspec.structs.replace(other, token=one.token)]
    assert agent.queue.turn("stay", decided(mixed), 0).refused == 2
    assert job.outcomes() == []


def test_a_token_for_a_mini_batch_that_nobody_holds_is_refused(job: JobOnRedis) -> None:
    job.publish(1)
    agent = job.agent()
    held = agent.lease(1)
    strange = msgspec.structs.replace(held[0], mini_batch=77, token="")
    assert agent.queue.turn("stay", decided([strange]), 0).refused == 1
    assert job.outcomes() == []


@pytest.mark.parametrize("died", [False, True])
def test_a_retry_charges_a_try_comes_back_first_and_is_told(job: JobOnRedis, died: bool) -> None:
    job.publish(3)
    agent = job.agent()
    held = agent.lease(2)
    again = agent.queue.turn("stay", retried(held[1:], died=died), 2).deliveries
    assert [(each.mini_batch, each.tries, each.is_suspect) for each in again] == [(1, 1, died), (2, 0, False)]
    assert [each.status for each in job.outcomes()] == ["retry"]
    assert again[0].message == message(1)
    third = agent.queue.turn("stay", retried(again[:1]), 1).deliveries
    assert [(each.mini_batch, each.tries, each.is_suspect) for each in third] == [(1, 2, died)]


@pytest.mark.parametrize("charged", [1, 2])
def test_a_failed_try_is_charged_what_its_agent_says(job: JobOnRedis, charged: int) -> None:
    job.publish(1)
    agent = job.agent()
    again = agent.queue.turn("stay", retried(agent.lease(1), charged=charged), 1).deliveries
    assert [each.tries for each in again] == [charged]


def test_a_return_charges_nothing_and_keeps_the_order(job: JobOnRedis) -> None:
    job.publish(6)
    agent = job.agent()
    held = agent.lease(4)
    turn = agent.queue.turn("stay", returned(held[1:]), 0)
    assert turn.ready == 5
    assert job.ready() == [1, 2, 3, 4, 5]
    again = agent.lease(3)
    assert [each.mini_batch for each in again] == [1, 2, 3]
    assert not any(each.tries or each.is_suspect for each in again)
    assert job.outcomes() == []


def test_a_decision_forgets_the_tries_and_losses_before_it(job: JobOnRedis) -> None:
    job.publish(2)
    agent = job.agent()
    again = agent.queue.turn("stay", retried(agent.lease(1)), 1).deliveries
    job.expire(agent)
    job.leader.reap(max_lost=10, max_lease_ms=1)
    assert job.charged() == {"tries": {0: 1}, "lost": {0: 1}}
    other = job.agent("other")
    last = other.lease(1)
    assert (last[0].mini_batch, last[0].tries, last[0].is_suspect) == (0, 1, True)
    assert last[0].token != again[0].token
    other.queue.turn("stay", decided(last), 0)
    assert job.charged() == {"tries": {}, "lost": {}}


def test_all_kinds_of_report_go_together(job: JobOnRedis) -> None:
    job.publish(6)
    agent = job.agent()
    held = agent.lease(6)
    reports = TurnReports(decided(held[:2]).decided, retried(held[2:4]).retries, returned(held[4:]).returns)
    assert len(reports) == 6
    assert sorted(reports.tokens()) == sorted(each.token for each in held)
    assert agent.queue.turn("stay", reports, 0).refused == 0
    assert job.leases() == {}
    assert sorted(job.ready()) == [2, 3, 4, 5]
    assert [(each.mini_batch, each.status) for each in job.outcomes()] == [
        (0, "done"), (1, "done"), (2, "retry"), (3, "retry"),
    ]  # fmt: skip


def test_a_full_turn_of_reports_of_every_kind_fits_in_one_call(job: JobOnRedis) -> None:
    for _ in range(3):
        job.publish(MAX_REPORTS)
    agent = job.agent()
    held = [each for _ in range(3) for each in agent.lease(MAX_REPORTS)]
    done, again, back = (held[at : at + MAX_REPORTS] for at in range(0, 3 * MAX_REPORTS, MAX_REPORTS))
    reports, rest = TurnReports(decided(done).decided, retried(again).retries, returned(back).returns).split()
    assert len(rest) == 0
    assert agent.queue.turn("stay", reports, 0).refused == 0
    assert len(job.outcomes()) == 2 * MAX_REPORTS
    assert len(job.ready()) == 2 * MAX_REPORTS
    assert job.leases() == {}


def test_reports_are_split_without_losing_or_repeating_any() -> None:
    reports = TurnReports(returns=[(number, f"s/{number}") for number in range(25)])
    now, rest = reports.split(10)
    later, last = rest.split(10)
    assert [*now.returns, *later.returns, *last.returns] == reports.returns
    assert (len(now), len(later), len(last)) == (10, 10, 5)


# Sessions
