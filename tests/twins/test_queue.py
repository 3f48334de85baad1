"""What the queue's proofs find when a rule of its scripts is broken."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from parallelrun_concatenator import bad_places
from parallelrun_concatenator.concatenate import Concatenation
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.storage.local import new_file
from parallelrun_core.store import fast_path
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.fast_path import Ask, conversation
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.outcome_stream import StreamEntry
from parallelrun_core.wire.states import JobState
from parallelrun_master import main
from parallelrun_master.leader.finishing import Finishing
from parallelrun_master.leader.output_requests import OutputRequests
from parallelrun_master.leadership import Leadership
from tests.integration.queue import job_context
from tests.integration.queue import test_concatenating as concatenating
from tests.integration.queue import test_finishing as finishing
from tests.integration.queue import test_leader as leader
from tests.integration.queue import test_leader_and_redis as leader_and_redis
from tests.integration.queue import test_leadership as leadership
from tests.integration.queue import test_model as model
from tests.integration.queue import test_publishing as publishing
from tests.integration.queue import test_reaping as reaping
from tests.integration.queue import test_streams as streams
from tests.integration.queue import test_turn as turn
from tests.integration.queue import test_turn_sessions as turn_sessions
from tests.integration.queue.job_on_redis import LONG_MS, JobOnRedis, decided
from tests.twins.sabotage import altered, always, expect_failure, nothing, replaced, without
from tests.unit.core import test_heartbeat as heartbeat

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

RENEW = LeaderQueue.renew


def test_without_the_fence_a_late_commit_is_taken(redis: Redis) -> None:
    with without("commit.fence"), expect_failure():
        turn.test_an_old_token_is_refused_once_the_mini_batch_went_to_somebody_else(JobOnRedis(redis), decided)


def test_without_the_fence_both_deliveries_of_a_straggler_commit(redis: Redis) -> None:
    with without("commit.fence"), expect_failure():
        turn_sessions.test_of_two_deliveries_the_first_to_commit_decides(JobOnRedis(redis))


def test_without_the_fence_the_model_and_the_server_part(redis: Redis) -> None:
    quick = settings(
        max_examples=300, stateful_step_count=30, deadline=None, phases=[Phase.generate], database=None,
        derandomize=True, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with without("commit.fence"), expect_failure(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.QueueMachine, "redis", redis, raising=False)
        run_state_machine_as_test(model.QueueMachine, settings=quick)


@pytest.mark.parametrize("what", ["publish", "forget", "move", "retire"])
def test_without_the_look_at_the_term_two_leaders_write(redis: Redis, what: str) -> None:
    with without("lead.term"), expect_failure():
        if what == "publish":
            publishing.test_who_was_replaced_cannot_publish(JobOnRedis(redis))
        elif what == "move":
            leadership.test_who_was_replaced_cannot_move_the_job_on(JobOnRedis(redis), JobState.FAILED)
        elif what == "retire":
            leadership.test_who_was_replaced_cannot_retire_the_job(JobOnRedis(redis))
        else:
            streams.test_who_was_replaced_cannot_make_redis_forget_what_its_successor_has_not_read(JobOnRedis(redis))


def test_a_checkpoint_apart_from_its_messages_publishes_twice(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderQueue, "_checkpoint_to_continue", always(0))
    with expect_failure():
        publishing.test_the_same_call_twice_publishes_once(JobOnRedis(redis))


def test_without_the_watch_who_is_replaced_while_it_publishes_has_published(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def unwatched(client: Redis) -> Iterator[Ask]:
        with conversation(client) as ask:
            yield lambda *commands: ask(*(("PING",) if command[0] == "WATCH" else command for command in commands))

    monkeypatch.setattr(fast_path, "conversation", unwatched)
    with expect_failure():
        publishing.test_who_is_replaced_while_it_publishes_has_not_published(JobOnRedis(redis), monkeypatch)


def test_leadership_without_end_is_found(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    def for_ever(queue: LeaderQueue, token: str, *, ttl_ms: int) -> None:
        RENEW(queue, token, ttl_ms=LONG_MS)

    monkeypatch.setattr(LeaderQueue, "renew", for_ever)
    monkeypatch.setattr(leadership, "PATIENCE_S", 0.3)
    with expect_failure():
        leadership.test_a_leader_that_is_not_heard_of_any_more_can_be_replaced(redis)


def test_a_leader_whom_nobody_renews_in_a_long_step_is_found(
    redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leadership, "renewed", always(nullcontext()))
    monkeypatch.setattr(leader, "PATIENCE_S", 0.3)
    with expect_failure():
        leader.test_a_leader_whose_step_takes_longer_than_its_lease_goes_on(
            lambda files, **options: job_context.Led(redis, redis_url, tmp_path, files, **options),
            "recovery",
            monkeypatch,
        )


def test_a_leader_that_looks_at_redis_only_after_an_error_is_found(
    redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leadership, "check_server", nothing)
    for module in (job_context, leader_and_redis):
        monkeypatch.setattr(module, "PATIENCE_S", 3.0)
    with without("lead.watchdog"), expect_failure():  # which would notice it, some seconds later
        leader_and_redis.test_a_redis_that_was_set_back_to_before_the_job_began_is_told_again(
            lambda files, **options: job_context.Led(redis, redis_url, tmp_path, files, **options),
            JobState.PROCESSING, False, monkeypatch,
        )  # fmt: skip


def test_a_resume_of_which_only_redis_knows_is_found(
    redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "is_forgotten", lambda registry, folder: registry.state(folder.job_id) is None)
    with expect_failure():
        leader_and_redis.test_a_resume_that_redis_has_forgotten_is_done_all_the_same(
            lambda files, **options: job_context.Led(redis, redis_url, tmp_path, files, **options)
        )


def test_waiting_that_is_taken_for_work_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "own_cpu_clock", always(time.monotonic))
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 0.3)
    with expect_failure():
        heartbeat.test_a_thread_that_waits_uses_no_time_of_its_own_and_one_that_works_does()


def test_an_end_that_leaves_committed_results_unread_is_found(
    redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Finishing, "_read_rest", nothing)
    with expect_failure():
        finishing.test_what_was_committed_before_the_end_is_kept_also_by_the_next_leader(
            lambda files, **options: job_context.Led(redis, redis_url, tmp_path, files, **options), JobState.CANCELED
        )


@pytest.fixture
def job(redis: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> concatenating.Job:
    monkeypatch.setattr(signal, "signal", nothing)
    return concatenating.Job(redis, redis_url, tmp_path)


def test_a_late_concatenation_that_replaces_the_output_is_found(
    job: concatenating.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Concatenation, "_check_still_wanted", nothing)
    with expect_failure():
        concatenating.test_one_that_was_paused_and_wakes_too_late_replaces_no_output(
            job, JobState.FINALIZING, monkeypatch
        )


def test_an_output_that_takes_the_place_of_another_jobs_is_found(
    job: concatenating.Job, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_file, "publish", lambda made, target, _: made.rename(target))
    with expect_failure():
        concatenating.test_of_two_jobs_with_one_output_the_second_replaces_nothing_and_keeps_its_rows(job, redis)


def test_rows_at_a_bad_place_of_a_disk_that_fail_the_job_are_found(
    job: concatenating.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_places, "_can_be_read", always(True))
    with expect_failure():
        concatenating.test_rows_at_a_bad_place_of_the_disk_are_made_again_if_others_can_be_read(
            job, 9, False, monkeypatch
        )


def test_an_output_of_an_earlier_generation_that_is_taken_is_found(job: concatenating.Job) -> None:
    def any_report(requests: OutputRequests, entries: list[StreamEntry]) -> None:
        requests.made = requests.made or next((each.concatenated for each in entries if each.concatenated), None)

    with replaced("parallelrun_master.leader.output_requests:OutputRequests.note", any_report), expect_failure():
        concatenating.test_what_is_made_of_an_earlier_generation_is_not_the_output_of_the_next(job)


def test_a_lost_generation_that_nobody_writes_again_is_found(job: concatenating.Job) -> None:
    with replaced("parallelrun_master.leader.job_context:JobContext.restore_generation", nothing), expect_failure():
        concatenating.check_a_lost_generation(job)


def test_an_output_without_the_rows_of_which_the_books_know_nothing_is_found(
    job: concatenating.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SegmentTable, "check_complete", nothing)
    with expect_failure():
        concatenating.test_rows_of_which_the_books_know_nothing_are_missed_and_nothing_is_published(job)


def test_an_agent_that_does_not_say_what_it_holds_is_found(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentQueue, "reassert", always(0))
    with expect_failure():
        turn_sessions.test_a_lost_answer_costs_no_mini_batch_once_the_agent_says_what_it_holds(JobOnRedis(redis))


def test_leases_by_the_clock_of_a_node_are_found(redis: Redis) -> None:
    clock: Any = f"{{{int(time.time()) - 3600}, 0}}"  # of a node that is an hour behind
    with altered("turn", "redis.call('TIME')", clock), expect_failure():
        turn_sessions.test_the_lease_is_counted_from_redis_clock(JobOnRedis(redis))


def test_belief_in_a_lease_that_ends_in_a_day_is_found(redis: Redis) -> None:
    with altered("reap", "redis.call('ZADD', KEYS[7], now + ARGV[3], session)", "local _ = session"), expect_failure():
        reaping.test_a_lease_far_in_the_future_is_cut_to_a_whole_one(JobOnRedis(redis))
