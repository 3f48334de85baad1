"""The turns of a pipeline on a real Redis: no wake is lost between two of them, and those that race do no harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from redis.exceptions import ConnectionError as RedisGone

from parallelrun_api.submission.reopening import Reopenings
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.cancelling import cancel
from parallelrun_core.intake.launching import launch
from parallelrun_core.intake.reopening import let_go_on, reopen
from parallelrun_core.pipelines.records import read_records
from parallelrun_core.service import failpoints
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.store.keys import ACTIVE_JOBS, JobKeys
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.rq.entries import LEAD, queue
from parallelrun_core.store.rq.wake import waiting_for_leader
from parallelrun_core.store.turns import wake, wakes
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.leadership import Leadership
from parallelrun_master.main import Master
from parallelrun_master.pipelines.pipeline_run import PipelineRun
from parallelrun_master.pipelines.turn import PATROL_MS, PipelineTurn
from parallelrun_master.settings import MasterSettings

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

STEP = {"type": "command", "job": {"command": "true"}}


def pipeline(redis: Redis, root: Path, steps: dict[str, Any]) -> JobFolder:
    spec = PipelineSpec.parse({"steps": steps})
    record = JobRecord(job_id=new_job_id(), submitted=time.time(), code="", spec=spec.model_dump(mode="json"))
    launch(redis, root, record)
    return JobFolder(root, record.job_id)


def take_turn(redis: Redis, folder: JobFolder) -> None:
    PipelineTurn(redis, folder, folder.record(), MasterSettings(root=folder.root)).run()


def end(redis: Redis, folder: JobFolder, state: JobState = JobState.COMPLETED) -> None:
    """What the leader of a step's job does last."""
    folder.conclude(JobResult(job_id=folder.job_id, state=state, started=1.0, ended=2.0, progress=Progress()))
    parent = folder.record().parent
    assert parent is not None
    wake(redis, parent.job_id)


def jobs_in(root: Path) -> set[str]:
    return {path.name for path in (root / "jobs").glob("job_*")}


@contextmanager
def at(point: str, happens: Callable[[], object]) -> Iterator[None]:
    """Something happens when a turn gets there."""
    with patch.object(failpoints, "reach", lambda name: happens() if name == point else None):
        yield


def another_leads(redis: Redis, folder: JobFolder) -> None:
    """The lease of a turn that was paused runs out, and the next turn begins."""
    redis.delete(JobKeys(folder.job_id).leader)
    assert LeaderQueue(redis, folder.job_id).acquire("another", ttl_ms=60_000, folder_term=0)


def the_job_in(folder: JobFolder) -> JobFolder:
    (job,) = jobs_in(folder.root) - {folder.job_id}
    return JobFolder(folder.root, job)


def test_a_wake_that_comes_while_a_turn_ends_lets_it_go_on(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP})
    turn = LeaderQueue(redis, folder.job_id)
    turn.acquire("token", ttl_ms=5000, folder_term=0)
    seen = wakes(redis, folder.job_id)
    wake(redis, folder.job_id)
    assert not turn.wait("token", pause_ms=PATROL_MS, wakes=seen)
    assert turn.wait("token", pause_ms=PATROL_MS, wakes=seen + 1)


def test_nobody_is_asked_to_lead_a_pipeline_that_waits_until_it_is_woken(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP, "two": {**STEP, "after": ["one"]}})
    take_turn(redis, folder)
    assert Registry(redis).has_leader(folder.job_id), "a master would ask for a leader each second"
    entries = queue(redis, LEAD)
    before = entries.count
    (child,) = jobs_in(tmp_path) - {folder.job_id}
    end(redis, JobFolder(tmp_path, child))
    wake(redis, folder.job_id)
    assert entries.count == before + 1, "one turn sees both wakes"
    assert entries.job_ids[0].startswith(f"lead-{folder.job_id}-after-"), "turns are short, and come first"
    take_turn(redis, folder)
    assert len(jobs_in(tmp_path)) == 3


def test_two_turns_at_once_start_each_step_once(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP, "two": STEP})
    take_turn(redis, folder)
    redis.delete(JobKeys(folder.job_id).leader)
    for job in jobs_in(tmp_path) - {folder.job_id}:
        Registry(redis).forget(job)  # the second one starts again what it doesn't find
    take_turn(redis, folder)
    assert len(jobs_in(tmp_path)) == 3
    records = read_records(folder)
    assert {record.job for (record,) in records.values()} == jobs_in(tmp_path) - {folder.job_id}


def test_jobs_that_wait_for_a_place_are_asked_for_only_once(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP, "two": STEP})
    take_turn(redis, folder)
    assert waiting_for_leader(redis) >= jobs_in(tmp_path)
    registry, jobs = Registry(redis), sorted(jobs_in(tmp_path))
    assert registry.without_leader(jobs) == [job for job in jobs if job != folder.job_id]
    before = queue(redis, LEAD).job_ids
    master = Master(MasterSettings(root=tmp_path))
    master._redis, master._registry = redis, registry
    master._ask_for_leaders(registry.active_jobs())
    assert queue(redis, LEAD).job_ids == before


def test_a_pipeline_that_redis_does_not_know_is_not_woken(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP})
    Registry(redis).forget(folder.job_id)
    wake(redis, folder.job_id)
    assert Registry(redis).state(folder.job_id) is None
    assert not redis.exists(JobKeys(folder.job_id).job)


def test_the_end_of_the_last_step_ends_the_pipeline_and_takes_it_off_the_list(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP, "two": STEP})
    take_turn(redis, folder)
    first, second = sorted(jobs_in(tmp_path) - {folder.job_id})
    end(redis, JobFolder(tmp_path, first))
    take_turn(redis, folder)
    assert folder.result() is None
    end(redis, JobFolder(tmp_path, second), JobState.FAILED)
    take_turn(redis, folder)
    result = folder.result()
    assert result is not None
    assert result.state is JobState.FAILED
    registry = Registry(redis)
    assert registry.status(folder.job_id).state is JobState.FAILED
    assert not registry.is_active(folder.job_id)


def test_what_needs_an_output_that_a_nested_pipeline_has_skipped_is_skipped(redis: Redis, tmp_path: Path) -> None:
    made = {"said": {"type": "uri_file"}}
    say = {**STEP, "job": {"command": "true", "outputs": made}, "conditions": [{"of": False}]}
    inner = {"steps": {"say": say}, "outputs": {"said": {"type": "uri_file", "of": {"step": "say", "output": "said"}}}}
    of = {"step": "inner", "output": "said"}
    folder = pipeline(
        redis,
        tmp_path,
        {
            "inner": {"type": "pipeline", "job": inner},
            "read": {**STEP, "inputs_from": {"said": {**of, "type": "uri_file"}}},
            "ask": {**STEP, "conditions": [{"of": of}]},
        },
    )
    take_turn(redis, folder)
    (child,) = jobs_in(tmp_path) - {folder.job_id}
    take_turn(redis, JobFolder(tmp_path, child))
    take_turn(redis, folder)
    result = folder.result()
    assert result is not None
    assert (result.state, result.failure) == (JobState.COMPLETED, None)
    records = read_records(folder)
    for name in ("read", "ask"):
        (record,) = records[name]
        assert (record.action, record.is_failure) == ("skip", False)
        assert "The step 'say' of the pipeline" in record.why


def test_a_turn_that_was_paused_until_another_one_began_starts_nothing(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP, "two": STEP})
    with at("step.decided", lambda: another_leads(redis, folder)):
        take_turn(redis, folder)
    assert jobs_in(tmp_path) == {folder.job_id}
    assert len(read_records(folder)) == 1, "it has decided more"


def test_a_turn_that_was_paused_until_another_one_began_records_no_end(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP})
    take_turn(redis, folder)
    end(redis, the_job_in(folder))
    with at("finish.before_result", lambda: another_leads(redis, folder)):
        take_turn(redis, folder)
    assert folder.result() is None


def test_a_turn_of_an_earlier_generation_starts_nothing(redis: Redis, tmp_path: Path) -> None:
    """The pipeline was ended and let go on while it was paused, which Redis is yet to hear."""
    folder = pipeline(redis, tmp_path, {"one": STEP})

    def goes_on() -> None:
        folder.conclude(JobResult(job_id=folder.job_id, state=JobState.FAILED, started=1, ended=2, progress=Progress()))
        folder.reopen(Reopening(generation=1, at=3.0, retry_failed=False))

    with at("step.decided", goes_on):
        take_turn(redis, folder)
    assert jobs_in(tmp_path) == {folder.job_id}


def test_a_pipeline_can_not_be_canceled_while_its_completion_is_being_recorded(redis: Redis, tmp_path: Path) -> None:
    folder, refused = pipeline(redis, tmp_path, {"one": STEP}), list[Conflict]()
    take_turn(redis, folder)
    end(redis, the_job_in(folder))

    def is_canceled() -> None:
        try:
            cancel(redis, folder)
        except Conflict as error:
            refused.append(error)

    with at("finish.before_result", is_canceled):
        take_turn(redis, folder)
    result = folder.result()
    assert result is not None
    assert (result.state, len(refused)) == (JobState.COMPLETED, 1)
    assert Registry(redis).state(folder.job_id) is JobState.COMPLETED


def test_the_next_turn_records_the_completion_that_one_has_begun_to_record(redis: Redis, tmp_path: Path) -> None:
    folder = pipeline(redis, tmp_path, {"one": STEP})
    take_turn(redis, folder)
    end(redis, the_job_in(folder))

    def dies() -> None:
        raise RedisGone

    with at("finish.before_result", dies), pytest.raises(RedisGone):
        take_turn(redis, folder)
    redis.delete(JobKeys(folder.job_id).leader)
    take_turn(redis, folder)
    result = folder.result()
    assert result is not None
    assert result.state is JobState.COMPLETED
    assert not Registry(redis).is_active(folder.job_id)


def test_a_step_that_can_only_go_on_soon_is_tried_again_also_after_a_wake(redis: Redis, tmp_path: Path) -> None:
    folder, registry = pipeline(redis, tmp_path, {"one": STEP}), Registry(redis)
    take_turn(redis, folder)
    child = the_job_in(folder)
    leads = LeaderQueue(redis, child.job_id)
    leads.acquire("child", ttl_ms=60_000, folder_term=0)
    registry.move(child.job_id, JobState.FAILED)
    end(redis, child, JobState.FAILED)
    take_turn(redis, folder)
    reopen(registry, folder, Reopening(generation=1, at=3.0, retry_failed=True))
    leadership = Leadership(redis, folder, MasterSettings(root=tmp_path))
    assert leadership.acquire()
    led = PipelineRun(redis, folder, folder.record(), leadership, tracing=None)
    for _ in range(2):
        assert not led.step()
        assert led.is_pending, "its job is still being cleaned up"
    registry.retire(child.job_id, term=leads.term)
    assert not led.step()
    assert (led.is_pending, child.generation()) == (False, 1)


def fail(redis: Redis, folder: JobFolder) -> None:
    """The only step of a pipeline fails, and so does the pipeline."""
    take_turn(redis, folder)
    child, registry = the_job_in(folder), Registry(redis)
    leads = LeaderQueue(redis, child.job_id)
    leads.acquire("child", ttl_ms=60_000, folder_term=0)
    registry.move(child.job_id, JobState.FAILED)
    end(redis, child, JobState.FAILED)
    registry.retire(child.job_id, term=leads.term)
    take_turn(redis, folder)
    assert registry.state(folder.job_id) is JobState.FAILED


@pytest.mark.parametrize("is_retired", [True, False])
def test_the_end_that_redis_has_gone_back_to_is_not_that_of_a_pipeline_that_goes_on(
    redis: Redis, tmp_path: Path, is_retired: bool
) -> None:
    folder, registry = pipeline(redis, tmp_path, {"one": STEP}), Registry(redis)
    fail(redis, folder)
    before = redis.dump(JobKeys(folder.job_id).job)
    Reopenings(tmp_path, redis).resume(folder.job_id, accept_changed_inputs=False)
    redis.restore(JobKeys(folder.job_id).job, 0, before, replace=True)  # type: ignore[arg-type]
    if is_retired:
        redis.zrem(ACTIVE_JOBS, folder.job_id)
        master = Master(MasterSettings(root=tmp_path))
        master._redis, master._registry = redis, registry
        master._register_forgotten()
    for _ in range(2):
        take_turn(redis, folder)
    assert folder.result() is None, "a generation has ended that has not begun"
    assert registry.state(folder.job_id) is JobState.PROCESSING
    end(redis, the_job_in(folder))
    take_turn(redis, folder)
    result = folder.result()
    assert result is not None
    assert (result.state, folder.generation()) == (JobState.COMPLETED, 1)


def test_a_pipeline_that_was_canceled_and_forgotten_can_be_resumed(redis: Redis, tmp_path: Path) -> None:
    """No leader had recorded that it was canceled, nor that its step was, when Redis lost everything."""
    folder, registry = pipeline(redis, tmp_path, {"one": STEP}), Registry(redis)
    take_turn(redis, folder)
    child = the_job_in(folder)
    cancel(redis, folder)
    redis.flushdb()

    def masters_and_leaders() -> None:
        """Whoever is asked for meanwhile."""
        if child.result() is None:
            end(redis, child, JobState.CANCELED)
            registry.forget(child.job_id)
        take_turn(redis, folder)

    with patch("time.sleep", lambda _: masters_and_leaders()):
        Reopenings(tmp_path, redis).resume(folder.job_id, accept_changed_inputs=False)
    take_turn(redis, folder)
    assert (folder.generation(), folder.result()) == (1, None)
    assert child.generation() == 1, "its step doesn't go on"
    end(redis, child)
    take_turn(redis, folder)
    result = folder.result()
    assert result is not None
    assert result.state is JobState.COMPLETED


def test_the_job_of_a_step_whose_result_is_seen_late_does_not_go_on(redis: Redis, tmp_path: Path) -> None:
    """As on NFS, which believes for a minute that a file is missing."""
    folder, registry = pipeline(redis, tmp_path, {"one": STEP}), Registry(redis)
    take_turn(redis, folder)
    child = the_job_in(folder)
    leads = LeaderQueue(redis, child.job_id)
    leads.acquire("child", ttl_ms=60_000, folder_term=0)
    registry.move(child.job_id, JobState.FAILED)
    leads.show({"ended": repr(registry.now())})
    registry.retire(child.job_id, term=leads.term)  # which is done once the result is recorded
    for late_s, state in ((0.0, JobState.FAILED), (74.0, JobState.FAILED), (76.0, JobState.QUEUED)):
        leads.show({"ended": repr(registry.now() - late_s)})
        let_go_on(redis, child)
        assert registry.state(child.job_id) is state, late_s


def test_a_pipeline_that_goes_on_does_so_also_where_that_is_seen_late(redis: Redis, tmp_path: Path) -> None:
    """As on NFS, which shows a folder for a minute as it was before."""
    folder, registry = pipeline(redis, tmp_path, {"one": STEP}), Registry(redis)
    fail(redis, folder)
    Reopenings(tmp_path, redis).resume(folder.job_id, accept_changed_inputs=False)
    begun, hidden = folder.layout.reopening(1), tmp_path / "hidden"
    begun.rename(hidden)
    take_turn(redis, folder)
    assert (registry.state(folder.job_id), registry.is_active(folder.job_id)) == (JobState.QUEUED, True)
    hidden.rename(begun)
    redis.delete(JobKeys(folder.job_id).leader)  # the pause is over
    take_turn(redis, folder)
    assert (registry.state(folder.job_id), the_job_in(folder).generation()) == (JobState.PROCESSING, 1)


def test_setbacks_of_a_pipeline_add_up_only_while_nothing_else_happens(redis: Redis, tmp_path: Path) -> None:
    """One now and then, in a pipeline of weeks, is no reason to fail it."""
    folder, registry = pipeline(redis, tmp_path, {"one": STEP, "two": {**STEP, "after": ["one"]}}), Registry(redis)
    take_turn(redis, folder)

    def crash() -> None:
        assert registry.state(folder.job_id) is JobState.PROCESSING
        redis.delete(JobKeys(folder.job_id).leader)
        with (
            patch.object(PipelineRun, "_show", side_effect=ValueError("a bug")),
            pytest.raises(ValueError, match="bug"),
        ):
            take_turn(redis, folder)

    crash()
    crash()
    end(redis, the_job_in(folder))
    for _ in range(3):
        crash()
    assert registry.state(folder.job_id) is JobState.FAILED
