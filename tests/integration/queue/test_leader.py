"""A whole leader on a real server, with agents that this test plays: cancels and takeovers at awkward moments."""

from __future__ import annotations

import errno
import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ConnectionError

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.failure import JobFailure
from parallelrun_core.folder.decisions import Decided, DecisionWriter, read_decisions
from parallelrun_core.folder.job_folder import JobFolder, JobRecord, JobResult, Reopening
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.message import encode_files
from parallelrun_core.outcome import Outcome
from parallelrun_core.progress import Progress
from parallelrun_core.spec import JobSpec
from parallelrun_core.states import JobState, NodeState
from parallelrun_core.store import rq_queues
from parallelrun_core.store.concatenation_lock import acquire_concatenation, release_concatenation
from parallelrun_core.store.connection import connect
from parallelrun_core.store.keys import ACTIVE_JOBS
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.nodes import NodeInfo, Nodes
from parallelrun_core.store.outcome_stream import MAX_ENTRIES, Concatenated, report_concatenated
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq_queues import CONCATENATE_QUEUE
from parallelrun_master import finishing, leadership, ledger, scheduling
from parallelrun_master import leader as leader_module
from parallelrun_master.finishing import Finishing
from parallelrun_master.leader import Leader
from parallelrun_master.leadership import Leadership
from parallelrun_master.led_job import LedJob
from parallelrun_master.ledger import Ledger
from parallelrun_master.main import Master
from parallelrun_master.policy import concatenation, setbacks, window
from parallelrun_master.policy.stages import Stage
from parallelrun_master.processing import Processing
from parallelrun_master.publisher import Publisher
from parallelrun_master.settings import MasterSettings
from tests.integration.queue.job_on_redis import JobOnRedis, decided, returned
from tests.unit.core.factories import outcome

if TYPE_CHECKING:
    from redis import Redis

pytestmark = [
    pytest.mark.integration,
    # A leader has a process of its own, which ends with it and so closes its files.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


PATIENCE_S = 30.0


class Led:
    """A job with a folder, and a leader to be run."""

    def __init__(
        self, redis: Redis, url: str, root: Path, files: int, state: JobState = JobState.QUEUED, **fields: object
    ) -> None:
        inputs = root / "inputs"
        inputs.mkdir()
        for number in range(files):
            (inputs / f"f{number}").touch()
        self.on_redis = JobOnRedis(redis, state)
        self.on_redis.leader.resign("leader")
        self.folder = JobFolder(root, self.on_redis.job_id)
        spec = JobSpec.parse({
            "entry_script": "a.py", "inputs": str(inputs), "mini_batch_size": 1, "output_action": "summary_only",
            **fields,
        })  # fmt: skip
        self.folder.create(
            JobRecord(job_id=self.on_redis.job_id, submitted=1.0, code="c", spec=spec.model_dump(mode="json"))
        )
        self.root = root
        self.url = url

    def leader(self, seconds: float = 600) -> Leader:
        """One whose lease is so long."""
        return Leader(connect(self.url), self.on_redis.job_id, MasterSettings(root=self.root, leader_seconds=seconds))

    def run_leader(self) -> None:
        """Lead the job until the leader ends by itself."""
        leader = self.leader()
        thread = threading.Thread(target=leader.run)
        thread.start()
        thread.join(PATIENCE_S)
        has_ended = not thread.is_alive()
        leader.resign()
        thread.join(PATIENCE_S)
        assert has_ended

    def is_led_to_its_end(self) -> bool:
        """Lead the job, unless another does; whether it has ended then."""
        self.leader().run()
        return self.folder.result() is not None

    def work(self, most: int = 3) -> None:
        """Be an agent until all is decided."""
        queue = self.on_redis.agent().queue
        deadline = time.monotonic() + PATIENCE_S
        reports, joined = decided(()), False
        while time.monotonic() < deadline:
            turn = queue.turn("stay" if joined else "join", reports, most)
            joined = True
            reports = decided(turn.deliveries)
            if turn.state is JobState.FINALIZING:
                queue.turn("leave", decided(()), 0)
                return
            time.sleep(0.005)

    def result(self) -> JobResult:
        found = self.folder.result()
        assert found is not None, "the leader has ended without a result"
        return found


def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait for something that has no event; whether it came."""
    until = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


@pytest.fixture
def led(redis: Redis, redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Led]]:
    """Make a job for a leader."""
    yield lambda files, **options: Led(redis, redis_url, tmp_path, files, **options)
    gc.collect()  # a leader's open files are found here, and not in the middle of somebody else's test


def test_a_job_is_led_from_its_beginning_to_its_end(led: Callable[..., Led]) -> None:
    job = led(25)
    thread, leader = threading.Thread(target=job.work), job.leader()
    thread.start()
    leader.run()
    thread.join(30)
    assert leader.stage is Stage.RETIRED
    result = job.result()
    assert result.state is JobState.COMPLETED
    assert (result.progress.done, result.progress.scheduled, result.order) == (25, 25, "sorted")
    assert sorted(each.mini_batch for each in read_decisions(job.folder.path)) == list(range(25))
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.COMPLETED
    assert job.on_redis.registry.active_jobs() == []


SLOW: dict[str, tuple[Any, str]] = {
    "recovery": (leader_module, "recover"),
    "manifest": (scheduling, "known_in"),
    "listing": (scheduling.Scheduler, "step"),
    "inputs": (Processing, "_changed_inputs"),
}


@pytest.mark.parametrize("step", SLOW)
def test_a_leader_whose_step_takes_longer_than_its_lease_goes_on(
    led: Callable[..., Led], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each one is replaced as soon as it is ready, for ever."""
    job = led(3)
    where, name = SLOW[step]
    whole, slow_steps = getattr(where, name), list[str]()

    def slow(*args: Any) -> Any:
        if not slow_steps:
            slow_steps.append(name)
            job.on_redis.redis.delete(job.on_redis.keys.leader)  # as if it had run out
            until = time.monotonic() + PATIENCE_S
            while not job.on_redis.registry.has_leader(job.on_redis.job_id) and time.monotonic() < until:
                time.sleep(0.001)  # as one who reads from a slow disk
        assert LeaderQueue(job.on_redis.redis, job.on_redis.job_id).acquire("rival", ttl_ms=600_000, folder_term=0) == 0
        return whole(*args)

    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(os.fsencode(job.root / "inputs"), [b"f0"])], 1), 1)  # or there is nothing to read
    manifest.sync()
    manifest.stop()
    monkeypatch.setattr(where, name, slow)
    monkeypatch.setattr(leadership, "_BEATS_PER_LEASE", 6_000)  # ten a second
    thread = threading.Thread(target=job.work)
    thread.start()
    job.leader().run()
    thread.join(30)
    assert slow_steps == [name]
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)


def test_a_leader_that_is_stuck_is_replaced_and_does_no_harm_when_it_goes_on(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(3)
    step, stuck, again = scheduling.Scheduler.step, threading.Event(), threading.Event()

    def sticks(scheduler: scheduling.Scheduler, budget_s: float) -> bool:
        if not stuck.is_set():
            stuck.set()
            again.wait(60)
        return step(scheduler, budget_s)

    monkeypatch.setattr(scheduling.Scheduler, "step", sticks)
    leader = job.leader(seconds=0.5)  # another thread gives its lease back, and nothing ends this process
    first = threading.Thread(target=leader.run)
    first.start()
    try:
        assert stuck.wait(PATIENCE_S)
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id)), "it leads on"
        agent = threading.Thread(target=job.work)
        agent.start()
        assert wait_until(job.is_led_to_its_end), "nobody may lead"
        again.set()
        for thread in (agent, first):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    finally:
        leader.resign()
        again.set()
        first.join(PATIENCE_S)
    assert leader.stage is Stage.FENCED
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)
    assert sorted(each.mini_batch for each in read_decisions(job.folder.path)) == [0, 1, 2]


def test_a_cancel_in_the_middle_of_publishing_is_concluded_by_the_same_leader(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(30)
    step = Publisher.step

    def canceled_just_before(publisher: Publisher, scheduled: int) -> bool:
        if job.on_redis.registry.state(job.on_redis.job_id) is JobState.PROCESSING:
            job.on_redis.registry.move(job.on_redis.job_id, JobState.CANCELED)
        return step(publisher, scheduled)

    monkeypatch.setattr(Publisher, "step", canceled_just_before)
    job.leader().run()
    assert job.result().state is JobState.CANCELED
    assert job.on_redis.registry.active_jobs() == []


def test_a_cancel_is_seen_though_the_connection_is_cut_when_it_has_just_been_read(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No agent works for the job, so nobody else wakes the leader."""
    job = led(3)
    tick, calls = Leadership.tick, 0

    def cut(led_by: Leadership, now: float) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            job.on_redis.registry.move(job.on_redis.job_id, JobState.CANCELED)
        elif calls == 6:  # a round later
            raise ConnectionError("cut")
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", cut)
    job.run_leader()
    assert job.result().state is JobState.CANCELED


@pytest.mark.parametrize("is_noticed", [True, False])
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.PROCESSING])
def test_a_redis_that_was_set_back_to_before_the_job_began_is_told_again(
    led: Callable[..., Led], state: JobState, is_noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a leader that asks nothing of it at that moment: redis-py then connects again without an error."""
    job = led(3)
    on_redis, keys = job.on_redis, job.on_redis.keys
    tick, calls = Leadership.tick, 0

    def set_back(led_by: Leadership, now: float) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            on_redis.force(state)
            on_redis.redis.hdel(keys.job, "published")
            on_redis.redis.delete(keys.outcomes, keys.ready, keys.messages)
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            if is_noticed:
                raise ConnectionError("restarted")
            on_redis.redis.client_kill_filter(skipme=True)
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", set_back)
    monkeypatch.setattr(leadership, "_TICK_S", 0.02)

    def work() -> None:
        assert wait_until(lambda: calls > 5)
        job.work()

    agent = threading.Thread(target=work)
    agent.start()
    try:
        job.run_leader()
    finally:
        agent.join(PATIENCE_S)
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)


def test_a_redis_that_was_set_back_is_told_again_of_the_nodes_and_of_the_beginning(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(3, instance_count=1)
    on_redis, keys = job.on_redis, job.on_redis.keys
    nodes, client = Nodes(on_redis.redis), on_redis.redis
    for name in ("a", "b"):
        info = NodeInfo(
            node=name, session=name, host="h", pid=1, slots=2, busy=0, state=NodeState.READY, version="0", started=0.0
        )
        nodes.beat(info, lease_ms=600_000)
    tick, started = Leadership.tick, list[str | None]()

    def look() -> tuple[set[bytes], str | None]:
        return client.smembers(keys.nodes), client.hget(keys.job, "started")  # type: ignore[return-value]

    def set_back(led_by: Leadership, now: float) -> bool:
        assigned, began = look()
        if assigned and not started:
            started.append(began)
            on_redis.force(JobState.QUEUED)
            client.delete(keys.nodes)
            client.hdel(keys.job, "started")
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            raise ConnectionError("restarted")
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", set_back)
    monkeypatch.setattr(leadership, "_TICK_S", 0.02)
    leader = job.leader()
    thread = threading.Thread(target=leader.run)
    thread.start()
    assert wait_until(lambda: bool(started) and len(look()[0]) == 1)
    assert look()[1] == started[0]
    leader.resign()
    thread.join(PATIENCE_S)


def test_a_publisher_whose_job_is_in_another_state_publishes_nothing(led: Callable[..., Led]) -> None:
    """It would go round without a pause, and the job would seem to make progress."""
    job = led(0, state=JobState.PROCESSING)
    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(b"/in", [b"f0"])], 1), 1)
    manifest.close(order="sorted")
    publisher = Publisher(job.folder.path, job.on_redis.leader, Decided())
    job.on_redis.force(JobState.QUEUED)
    assert not publisher.step(1)
    job.on_redis.force(JobState.PROCESSING)
    assert publisher.step(1)


def test_a_leader_whose_successor_redis_has_forgotten_does_not_go_on(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would read what it enters, and Redis would forget it."""
    job = led(3)
    tick, calls = Leadership.tick, 0

    def set_back(led_by: Leadership, now: float) -> bool:
        nonlocal calls
        calls += 1
        if calls == 5:
            DecisionWriter(job.folder.path, led_by.term + 1).close()
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            raise ConnectionError("restarted")
        return tick(led_by, now)

    monkeypatch.setattr(Leadership, "tick", set_back)
    job.run_leader()
    assert calls == 5
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.PROCESSING


def test_what_is_finalized_is_durable_though_redis_was_set_back_at_the_last_moment(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The books are full and not synced yet when Redis is restarted, and it has nothing to tell any more."""
    job = led(3)
    on_redis, agent, durable = job.on_redis, job.on_redis.agent(), list[list[int]]()
    tick, move, record, recorded = Leadership.tick, LedJob.move, Ledger.record, list[Outcome]()

    def recording(books: Ledger, outcomes: list[Outcome], *encoded: Any) -> Any:
        recorded.extend(outcomes)
        return record(books, outcomes, *encoded)

    def set_back(led_by: Leadership, now: float) -> bool:
        if len(recorded) == 3 and on_redis.redis.xtrim(on_redis.keys.outcomes, maxlen=0):
            monkeypatch.setattr(leadership, "server_run_id", lambda _: "another")
            raise ConnectionError("restarted")
        return tick(led_by, now)

    def moved(job_led: LedJob, to: JobState, failure: JobFailure | None = None) -> None:
        if to is JobState.FINALIZING:
            durable.append([each.mini_batch for each in read_decisions(job.folder.path)])
        move(job_led, to, failure)

    monkeypatch.setattr(ledger, "_SYNC_EVERY_S", 1e9)  # not unless it must be
    monkeypatch.setattr(Ledger, "record", recording)
    monkeypatch.setattr(Leadership, "tick", set_back)
    monkeypatch.setattr(LedJob, "move", moved)
    thread = threading.Thread(target=job.leader().run)
    thread.start()
    until = time.monotonic() + 30
    while len(held := agent.lease(3)) < 3 and time.monotonic() < until:
        agent.queue.turn("stay", returned(held), 0)
        time.sleep(0.01)
    agent.queue.turn("leave", decided(held), 0)
    thread.join(30)
    assert durable == [[0, 1, 2]]
    assert job.result().state is JobState.COMPLETED


@pytest.mark.parametrize("state", [JobState.CANCELED, JobState.FAILED, JobState.FINALIZING])
def test_who_takes_over_after_the_result_was_recorded_waits_for_the_agents_and_cleans_up(
    led: Callable[..., Led], state: JobState
) -> None:
    job = led(1, state=state)
    ended = state if state.is_terminal else JobState.COMPLETED
    job.folder.conclude(JobResult(job_id=job.on_redis.job_id, state=ended, started=1.0, ended=2.0, progress=Progress()))
    agent = job.on_redis.agent()
    agent.lease(0)
    timer = threading.Timer(0.5, lambda: agent.queue.turn("leave", decided(()), 0))
    timer.start()
    job.leader().run()
    timer.join()
    assert job.on_redis.registry.active_jobs() == []
    assert job.on_redis.registry.state(job.on_redis.job_id) is ended


@pytest.mark.parametrize("step, before, behind", [
    ((JobFolder, "conclude"), 1, 0), ((Finishing, "_show_end"), 1, 0), ((Finishing, "_show_end"), 0, 2),
    ((Registry, "retire"), 1, 0),
])  # fmt: skip
def test_a_leader_that_wakes_when_its_job_was_reopened_leaves_that_alone(
    led: Callable[..., Led], step: tuple[type, str], before: int, behind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one has recorded the end, the user has let the job go on, and its output is being put together.

    Args:
        before, behind: which call of this step the leader has slept before, or behind.
    """
    job = led(1, state=JobState.FAILED)
    on_redis, folder = job.on_redis, job.folder
    whole, calls, after = getattr(*step), 0, dict[bytes, Any]()
    merging = folder.output_file(folder.record().job_spec()).parent / f".merging-{on_redis.job_id}-0123456789abcdef"

    def another_ends_it() -> None:
        on_redis.redis.delete(on_redis.keys.leader)  # as if it had run out
        job.leader().run()
        folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
        on_redis.reopen_retired()
        on_redis.publish(3)
        merging.touch()
        after.update(on_redis.everything())

    def sleeps(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        number = calls
        if number == before:
            another_ends_it()
        answer = whole(*args, **options)
        if number == behind:
            another_ends_it()
        return answer

    monkeypatch.setattr(*step, sleeps)
    job.leader().run()
    assert after, "nobody has slept"
    assert folder.result() is None, "its end was recorded as that of another generation"
    assert merging.exists()
    assert on_redis.registry.active_jobs() == [on_redis.job_id]
    assert on_redis.everything() == after


def forget_the_reopening(job: Led) -> None:
    """Redis loses its last second, with what it was told of a `resume`."""
    on_redis, client = job.on_redis, job.on_redis.redis
    job.folder.conclude(
        JobResult(job_id=on_redis.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    )
    on_redis.registry.retire(on_redis.job_id, term=on_redis.leader.term)
    before = client.dump(on_redis.keys.job)
    Reopenings(job.root, on_redis.registry, lambda *_: None).resume(on_redis.job_id, accept_changed_inputs=False)
    assert before is not None
    client.restore(on_redis.keys.job, 0, before, replace=True)
    client.zrem(ACTIVE_JOBS, on_redis.job_id)


def test_a_resume_that_redis_has_forgotten_is_done_all_the_same(led: Callable[..., Led]) -> None:
    job = led(1, state=JobState.FAILED)
    forget_the_reopening(job)
    Master(MasterSettings(root=job.root, redis_url=job.url)).register_forgotten(job.on_redis.registry)
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
    assert job.on_redis.registry.active_jobs() == [job.on_redis.job_id]
    assert job.folder.generation() == 1


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_job_that_is_about_to_end_or_has_ended_is_not_taken_for_a_reopened_one(
    led: Callable[..., Led], is_recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its leader records the end and takes it off the list while the master looks."""
    job = led(1, state=JobState.CANCELED)
    on_redis, look = job.on_redis, Registry.is_active

    def end() -> None:
        result = JobResult(job_id=on_redis.job_id, state=JobState.CANCELED, started=1.0, ended=2.0, progress=Progress())
        job.folder.conclude(result)
        on_redis.registry.retire(on_redis.job_id, term=on_redis.leader.term)

    def ends_meanwhile(registry: Registry, job_id: str) -> bool:
        end()
        return look(registry, job_id)

    if is_recorded:
        monkeypatch.setattr(Registry, "is_active", ends_meanwhile)
    Master(MasterSettings(root=job.root, redis_url=job.url)).register_forgotten(on_redis.registry)
    assert on_redis.registry.state(on_redis.job_id) is JobState.CANCELED


def test_a_changed_input_whose_name_is_no_utf_8_is_told(led: Callable[..., Led]) -> None:
    job = led(0, state=JobState.FAILED)
    manifest = ManifestWriter(job.folder.path, 1)
    manifest.add(encode_files([(os.fsencode(job.root / "inputs"), [b"b\xff"])], 1), 1)
    manifest.close(order="sorted")
    job.folder.conclude(
        JobResult(job_id=job.on_redis.job_id, state=JobState.FAILED, started=1.0, ended=2.0, progress=Progress())
    )
    job.folder.reopen(Reopening(generation=1, at=1.0, retry_failed=False))
    job.on_redis.force(JobState.QUEUED)
    job.run_leader()
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, "b\\udcff is gone" in failure.summary) == ("INPUTS_CHANGED", True)


def test_what_is_done_again_after_redis_was_set_back_makes_room_for_more(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole window of it, as with a restored snapshot: nothing else would be published for ever."""
    monkeypatch.setattr(window, "MAX_OUTSTANDING", 3)
    job = led(6, state=JobState.PROCESSING)
    earlier = DecisionWriter(job.folder.path, 1)
    earlier.add([outcome(number) for number in range(3)])
    earlier.sync()
    earlier.close()
    job.on_redis.publish(3)
    agent = threading.Thread(target=job.work, args=(1,))  # what agents hold makes room in any case
    step = Publisher.step

    def begins(publisher: Publisher, scheduled: int) -> bool:
        if agent.ident is None:  # what was done before would make room, too
            agent.start()
        return step(publisher, scheduled)

    monkeypatch.setattr(Publisher, "step", begins)
    job.run_leader()
    agent.join(PATIENCE_S)
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 6)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next leader may try at once."""
    monkeypatch.setattr(setbacks, "LONGEST_PAUSE_S", 0.001)


@pytest.mark.usefixtures("no_pauses")
def test_a_volume_that_comes_back_costs_no_more_than_time(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not blamed on the input either."""
    errors = [errno.ESTALE, errno.EROFS, errno.ETIMEDOUT, errno.EIO] * 2
    job, sync, away = led(3), DecisionWriter.sync, errors.copy()

    def fails(writer: DecisionWriter) -> None:
        if away:
            raise OSError(number := away.pop(0), os.strerror(number))
        sync(writer)

    monkeypatch.setattr(DecisionWriter, "sync", fails)
    agent = threading.Thread(target=job.work)
    agent.start()
    for _ in range(9):
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        job.leader().run()
    agent.join(PATIENCE_S)
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 3)
    told = [json.loads(data) for event, data in job.on_redis.events()
            if event == "error"]  # fmt: skip
    assert [each["message"] for each in told] == [f"[Errno {number}] {os.strerror(number)}" for number in errors]


@pytest.mark.usefixtures("no_pauses")
def test_a_volume_that_does_not_come_back_fails_the_job(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle", "/data/decisions.1")

    job = led(1)
    monkeypatch.setattr(leader_module, "Reports", stale)
    for _ in range(setbacks.TROUBLE.most or 0):
        assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        job.leader().run()
    failure = job.on_redis.registry.status(job.on_redis.job_id).failure
    assert failure is not None
    assert failure.code == "MASTER_ERROR"
    assert "30 times in a row: [Errno 116] Stale file handle: '/data/decisions.1'" in failure.summary


def test_between_leaders_whose_disk_is_full_there_are_pauses_that_grow_and_no_end(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    job, pauses = led(1), list[int]()
    monkeypatch.setattr(leader_module, "Reports", full)
    for _ in range(40):
        job.leader().run()
        pauses.append(job.on_redis.redis.pttl(job.on_redis.keys.leader))
        job.on_redis.redis.delete(job.on_redis.keys.leader)
    assert all(pause <= 1000 * most for pause, most in zip(pauses, (1, 2, 4, 8, 16), strict=False))
    assert all(0 < pause <= 30_000 for pause in pauses[5:])
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED


@pytest.mark.usefixtures("no_pauses")
def test_crashes_fail_a_job_only_in_a_row_without_anything_durable_in_between(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashes(*_: object) -> None:
        raise ValueError("a bug")

    def crash() -> None:
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        leader = job.leader()
        with pytest.raises(ValueError, match="a bug"):
            leader.run()
        assert leader.stage is Stage.SET_BACK

    monkeypatch.setattr(Publisher, "step", crashes)
    job = led(0)
    manifest = ManifestWriter(job.folder.path, 1)
    for _ in range(5):
        manifest.add(encode_files([(b"/in", [b"f"])], 1), 1)
    manifest.close(order="sorted")  # so that no leader lists more than the one before, which would count
    crash()
    crash()
    writer = DecisionWriter(job.folder.path, 7)  # a leader that had more luck
    writer.add([outcome(0)])
    writer.sync()
    writer.close()
    for _ in range(2):
        crash()
        assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.PROCESSING
    crash()
    failure = job.on_redis.registry.status(job.on_redis.job_id).failure
    assert failure is not None
    assert (failure.code, failure.summary) == ("MASTER_ERROR", "The master failed 3 times: ValueError: a bug")


@pytest.mark.usefixtures("no_pauses")
def test_an_input_that_can_never_be_read_fails_the_job_by_its_name(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, scandir = led(1), os.scandir

    def bad_sector(path: Any) -> Any:
        if path == os.fsencode(job.root / "inputs"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fsdecode(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", bad_sector)
    for leaders in range(20):  # noqa: B007 - counted
        assert wait_until(lambda: not job.on_redis.registry.has_leader(job.on_redis.job_id))
        job.leader().run()
        if job.folder.result() is not None:
            break
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, leaders) == ("INPUT_UNREADABLE", setbacks.INPUT_TROUBLE.most)
    assert f"Input/output error: '{job.root / 'inputs'}'" in failure.summary


def test_an_output_that_can_never_be_put_together_for_its_disk_fails_the_job(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_AGAIN_S", "_GONE_S", "_FIRST_PAUSE_S"):
        monkeypatch.setattr(concatenation, name, 0.001)
    job = led(1, state=JobState.FINALIZING, output_action="append_row")
    on_redis, problem = job.on_redis, "The output can't be put together: [Errno 5] Input/output error"
    on_redis.redis.xadd(on_redis.keys.outcomes, {"state": "finalizing"})
    thread = threading.Thread(target=job.leader().run)
    thread.start()
    told = 0
    while thread.is_alive() and told < 1000:
        report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("", 0, "", problem, is_postponed=True))
        told += 1
        thread.join(0.02)
    thread.join(PATIENCE_S)
    failure = job.result().failure
    assert failure is not None
    assert (failure.code, failure.summary) == ("CONCATENATION_FAILED", problem)


@pytest.mark.parametrize("state", [JobState.CANCELED, JobState.FAILED])
def test_what_was_committed_before_the_end_is_kept_also_by_the_next_leader(
    led: Callable[..., Led], state: JobState
) -> None:
    """More of it than one reading takes; who resumes the job doesn't run it again."""
    job = led(1, state=JobState.PROCESSING)
    on_redis = job.on_redis
    assert on_redis.leader.acquire("before", ttl_ms=600_000, folder_term=0)
    on_redis.publish(MAX_ENTRIES + 20)
    agent = on_redis.agent()
    for delivery in agent.lease(MAX_ENTRIES + 10):
        assert agent.queue.turn("stay", decided([delivery]), 0).refused == 0
    on_redis.registry.move(on_redis.job_id, state)
    agent.queue.turn("leave", decided(()), 0)
    on_redis.leader.resign("before")
    job.leader().run()
    assert len(list(read_decisions(job.folder.path))) == MAX_ENTRIES + 10
    assert (job.result().state, job.result().progress.done) == (state, MAX_ENTRIES + 10)


def test_a_leader_told_to_stop_while_workers_shut_down_leaves_the_output_to_the_next(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = led(1, state=JobState.FINALIZING, output_action="append_row")
    job.on_redis.agent().lease(0)
    leader, sessions = job.leader(), LeaderQueue.sessions

    def told_to_stop(queue: LeaderQueue) -> Iterator[str]:
        leader.resign()
        return sessions(queue)

    monkeypatch.setattr(LeaderQueue, "sessions", told_to_stop)
    leader.run()
    assert leader.stage is Stage.RESIGNED
    assert job.folder.result() is None, "the job has ended without its output"
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.FINALIZING
    assert not job.on_redis.registry.has_leader(job.on_redis.job_id)


def test_while_a_concatenation_lives_no_other_is_asked_for(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_AGAIN_S", "_GONE_S"):
        monkeypatch.setattr(concatenation, name, 0.01)
    monkeypatch.setattr(finishing, "_WAIT_MS", 10)
    job = led(1, state=JobState.FINALIZING, output_action="append_row")
    on_redis, looks = job.on_redis, threading.Semaphore(0)
    on_redis.redis.xadd(on_redis.keys.outcomes, {"state": "finalizing"})
    alive = LeaderQueue.is_concatenating

    def looked(queue: LeaderQueue) -> bool:
        looks.release()
        return alive(queue)

    monkeypatch.setattr(LeaderQueue, "is_concatenating", looked)
    assert acquire_concatenation(on_redis.redis, on_redis.job_id, ttl_ms=60_000)
    thread = threading.Thread(target=job.leader().run)
    thread.start()
    asked = rq_queues.queue(on_redis.redis, CONCATENATE_QUEUE)
    for _ in range(5):
        assert looks.acquire(timeout=30)
    assert asked.count == 0
    release_concatenation(on_redis.redis, on_redis.job_id)
    until = time.monotonic() + 30
    while not asked.count and time.monotonic() < until:
        time.sleep(0.01)
    for _ in range(5):
        assert looks.acquire(timeout=30)
    assert asked.count == 1, "asked for again while the first one waits for its turn"
    report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("", 0, "", is_postponed=True))
    report_concatenated(on_redis.redis, on_redis.job_id, Concatenated("/out", 5, "abc"))
    thread.join(30)
    assert (job.result().state, job.result().output) == (JobState.COMPLETED, "/out")


def test_a_leader_that_is_cut_off_while_it_recovers_leaves_the_job_to_the_next(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing yet that would be worth waiting for."""

    def cut(*_: object) -> None:
        raise ConnectionError("cut")

    monkeypatch.setattr(leader_module, "recover", cut)
    leader = led(1).leader()
    with pytest.raises(ConnectionError):
        leader.run()
    assert leader.stage is Stage.CUT_OFF


def test_a_second_leader_is_turned_away(led: Callable[..., Led]) -> None:
    job = led(1)
    holder: Any = job.on_redis.leader
    assert holder.acquire("somebody", ttl_ms=600_000, folder_term=0)
    leader = job.leader()
    leader.run()
    assert leader.stage is Stage.TURNED_AWAY
    assert job.folder.result() is None
    assert job.on_redis.registry.state(job.on_redis.job_id) is JobState.QUEUED
