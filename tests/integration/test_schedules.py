"""Masters make the jobs of schedules: one for each time, whoever dies, and however their clocks jump."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import httpx
import pytest

from parallelrun_core.code.snapshots import snapshot_folder, snapshot_nothing
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.prepared import JOB_ID, TRIGGER_TIME
from parallelrun_core.layout import code_store, job_ids, make_store
from parallelrun_core.schedules.policy import FireOutcome
from parallelrun_core.schedules.records import Revision, rfc3339_of, utc_time
from parallelrun_core.schedules.store import ScheduleStore
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.schedules.firing import Firing
from tests.cluster import Cluster
from tests.twins.sabotage import expect_failure, without

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

START = 1_795_410_000.0
"""A full hour."""
MINUTE = 60.0
ENTRY_SCRIPT = "def run(mini_batch):\n    return mini_batch\n"
BY_THE_MINUTE = {"type": "cron", "expression": "* * * * *"}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def job_record(root: Path, **settings: Any) -> JobRecord:
    """A job that was checked: a shell command."""
    make_store(code_store(root))
    spec = JobSpec.parse({"command": "true", **settings}).model_dump(mode="json")
    return JobRecord(job_id="", submitted=0, code=snapshot_nothing(code_store(root)), spec=spec)


def schedule(root: Path, number: int = 1, *, name: str = "nightly", **fields: Any) -> Revision:
    """A schedule that is due at each full minute after START, unless told otherwise."""
    settings: dict[str, Any] = {
        "schedule_id": "one", "made": START, "at": START, "is_enabled": True, "trigger": BY_THE_MINUTE,
        "missed": "once", "may_overlap": True, "job": job_record(root),
    }  # fmt: skip
    revision = Revision(number=number, **{**settings, **fields})
    ScheduleStore(root).put(name, revision)
    return revision


def fires(root: Path, name: str = "nightly") -> list[tuple[str, FireOutcome, int]]:
    """What became of which minute after START, and how many were passed over; the latest first."""
    latest_first = ScheduleStore(root).fires(name).latest_first()
    return [(each.due, each.outcome, each.passed_over) for _, each in latest_first]


def at_minute(number: float) -> str:
    return rfc3339_of(utc_time(START + number * MINUTE))


def end(root: Path, job_id: str) -> None:
    JobFolder(root, job_id).conclude(
        JobResult(job_id=job_id, state=JobState.COMPLETED, started=None, ended=START, progress=Progress())
    )


def race(*calls: Callable[[], object]) -> None:
    """Call all of them at the same time."""
    barrier = threading.Barrier(len(calls))
    errors = []

    def run(call: Callable[[], object]) -> None:
        barrier.wait(10)
        try:
            call()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors, errors


def two_masters_make_one_job_for_each_time(redis: Redis, root: Path) -> None:
    clock = Clock()
    schedule(root)
    masters = [Firing(root, redis, clock=clock) for _ in range(4)]
    for _ in range(11):
        race(*(master.check for master in masters))
        race(*(master.check for master in masters))
        clock.now += MINUTE
    assert [due for due, _, _ in fires(root)] == [at_minute(number) for number in range(10, -1, -1)]
    assert len(job_ids(root)) == 11
    assert {fire.job_id for _, fire in ScheduleStore(root).fires("nightly").latest_first()} == set(job_ids(root))


def test_masters_make_one_job_for_each_time(redis: Redis, root: Path) -> None:
    two_masters_make_one_job_for_each_time(redis, root)


def test_masters_that_decide_each_for_itself_are_found(redis: Redis, root: Path) -> None:
    with without("fire.once"), expect_failure():
        two_masters_make_one_job_for_each_time(redis, root)


def test_the_job_is_what_was_prepared_with_its_own_names(redis: Redis, root: Path, clock: Clock) -> None:
    job = job_record(root, output=f"/out/{JOB_ID}", command=f"echo {TRIGGER_TIME}")
    revision = schedule(root, job=job)
    Firing(root, redis, clock=clock).check()

    (job_id,) = job_ids(root)
    record = JobFolder(root, job_id).record()
    assert job_id == revision.job_id(utc_time(START))
    assert record.spec["output"] == f"/out/{job_id}"
    assert record.job_spec().command == "echo 20261123T050000Z"
    assert record.submitted == START
    assert record.notes == [f"made by the schedule 'nightly' for {at_minute(0)}"]
    assert Registry(redis).state(job_id) is JobState.QUEUED


def test_what_was_missed_is_made_up_once_or_skipped(redis: Redis, root: Path, clock: Clock) -> None:
    schedule(root)
    schedule(root, name="weekly", missed="skip")
    clock.now += 90 * MINUTE + 59
    master = Firing(root, redis, clock=clock)
    master.check()
    master.check()
    assert fires(root) == [(at_minute(90), FireOutcome.STARTED, 90)]
    assert fires(root, "weekly") == [(at_minute(90), FireOutcome.STARTED, 90)]  # that minute was not over

    quarters = {"type": "recurrence", "frequency": "minute", "interval": 15}
    schedule(root, name="rare", missed="skip", trigger=quarters)
    clock.now += 5 * MINUTE
    master.check()
    assert fires(root, "rare") == [(at_minute(90), FireOutcome.MISSED, 6)]
    clock.now = START + 105 * MINUTE
    master.check()
    assert fires(root, "rare")[0] == (at_minute(105), FireOutcome.STARTED, 0)


def test_no_job_is_made_while_an_earlier_one_runs_unless_that_is_allowed(
    redis: Redis, root: Path, clock: Clock
) -> None:
    schedule(root, may_overlap=False)
    master = Firing(root, redis, clock=clock)
    master.check()
    (job_id,) = job_ids(root)
    clock.now += MINUTE
    master.check()
    assert fires(root) == [(at_minute(1), FireOutcome.SKIPPED, 0), (at_minute(0), FireOutcome.STARTED, 0)]
    assert next(ScheduleStore(root).fires("nightly").latest_first())[1].why == f"job {job_id} had not ended"
    end(root, job_id)
    clock.now += MINUTE
    master.check()
    assert fires(root)[0] == (at_minute(2), FireOutcome.STARTED, 0)
    clock.now += MINUTE
    schedule(root, 2, may_overlap=True, at=clock.now - 1)
    master.check()
    assert fires(root)[0] == (at_minute(3), FireOutcome.STARTED, 0)


def test_a_clock_that_goes_back_fires_nothing_twice(redis: Redis, root: Path, clock: Clock) -> None:
    schedule(root)
    master = Firing(root, redis, clock=clock)
    for number in (0, 1, 2, 3, -5, 1, 2, 3, 4):
        clock.now = START + number * MINUTE
        master.check()
    assert [due for due, _, _ in fires(root)] == [at_minute(number) for number in (4, 3, 2, 1, 0)]
    assert len(job_ids(root)) == 5


def test_a_clock_that_was_ahead_holds_nothing_up(redis: Redis, root: Path, clock: Clock) -> None:
    schedule(root)
    master = Firing(root, redis, clock=clock)
    for number in (0, 1_000_000, 1, 2):
        clock.now = START + number * MINUTE
        master.check()
    assert [due for due, _, _ in fires(root)] == [at_minute(number) for number in (1_000_000, 2, 1, 0)]


def test_a_job_that_a_clock_ahead_has_decided_upon_is_made_also_when_its_master_dies(
    redis: Redis, root: Path, clock: Clock
) -> None:
    schedule(root)
    clock.now = START + MINUTE

    def dies(point: str) -> None:
        raise MemoryError(point)

    with patch.object(failpoints, "reach", dies), pytest.raises(MemoryError):
        Firing(root, redis, clock=clock).check()
    assert job_ids(root) == []
    clock.now = START + MINUTE - 20
    schedule(root, 2, is_enabled=False, at=clock.now)  # so nobody looks again at that time
    Firing(root, redis, clock=clock).check()
    latest_first = ScheduleStore(root).fires("nightly").latest_first()
    assert [job_id for _, fire in latest_first if (job_id := fire.job_id)] == job_ids(root)
    assert len(job_ids(root)) == 1


def test_a_schedule_is_what_it_was_last_made(redis: Redis, root: Path, clock: Clock) -> None:
    schedule(root)
    master = Firing(root, redis, clock=clock)
    master.check()
    schedule(root, 2, is_enabled=False, at=clock.now)
    clock.now += 5 * MINUTE
    master.check()
    assert len(job_ids(root)) == 1
    schedule(root, 3, at=clock.now)  # what was due while it was disabled is not made up
    master.check()
    assert len(job_ids(root)) == 1
    clock.now += MINUTE
    master.check()
    assert fires(root)[0] == (at_minute(6), FireOutcome.STARTED, 0)
    ScheduleStore(root).remove("nightly")
    clock.now += MINUTE
    master.check()
    assert len(job_ids(root)) == 2
    schedule(root, at=clock.now - MINUTE, schedule_id="another")
    master.check()
    assert len(job_ids(root)) == 3


def test_one_that_cannot_be_read_holds_up_no_other(redis: Redis, root: Path, clock: Clock) -> None:
    schedule(root, name="a", trigger={"type": "moon"})
    schedule(root, name="b")
    schedule(root, name="c", job=JobRecord(job_id="", submitted=0, code="", spec={"entry_script": 1}))
    schedule(root, name="d")
    master = Firing(root, redis, clock=clock)
    master.check()
    assert [len(fires(root, name)) for name in "abcd"] == [0, 1, 1, 1]


def test_redis_that_is_away_delays_the_job(
    redis: Redis, root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parallelrun_core.store.connection import ServerUnable

    def away(*_: object) -> None:
        raise ServerUnable("LOADING")

    schedule(root)
    master = Firing(root, redis, clock=clock)
    with monkeypatch.context() as patch:
        patch.setattr("parallelrun_master.schedules.firing.launch", away)
        with pytest.raises(ServerUnable):
            master.check()
    assert job_ids(root) == []
    clock.now += 1
    master.check()
    assert len(job_ids(root)) == 1


def test_with_nothing_to_do_only_a_folder_is_looked_at(
    redis: Redis, root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule(root)
    master = Firing(root, redis, clock=clock)
    master.check()
    master.check()
    monkeypatch.setattr("parallelrun_core.schedules.store.ScheduleStore.names", lambda _: pytest.fail("it was read"))
    monkeypatch.setattr("parallelrun_core.schedules.store.ScheduleStore.find", lambda *_: pytest.fail("it was read"))
    clock.now += 30
    master.check()


# Real processes


SCHEDULE_ID = new_job_id()


def in_seconds(cluster: Cluster, seconds: float, **fields: Any) -> Revision:
    """A schedule that is due once, in so many seconds."""
    now = time.time()
    start = utc_time(now + seconds).replace(microsecond=0).isoformat()
    trigger = {"type": "recurrence", "frequency": "hour", "interval": 1, "start_time": start}
    code = snapshot_folder(cluster.code(ENTRY_SCRIPT), code_store(cluster.root))
    spec = JobSpec.parse({"entry_script": "entry.py", "inputs": str(cluster.files(2)), "output_action": "summary_only"})
    job = JobRecord(job_id="", submitted=0, code=code, spec=spec.model_dump(mode="json"))
    settings = {
        "job": job,
        "made": now,
        "at": now - 1,
        "trigger": trigger,
        "schedule_id": SCHEDULE_ID,
        "may_overlap": False,
    }
    return schedule(cluster.root, **{**settings, **fields})


def the_only_job(cluster: Cluster) -> str:
    cluster.until(lambda: len(job_ids(cluster.root)) > 0, "the job is made")
    assert cluster.result(job_ids(cluster.root)[0]).state is JobState.COMPLETED
    (job_id,) = job_ids(cluster.root)
    return job_id


@pytest.mark.slow
def test_two_masters_of_one_cluster_make_one_job() -> None:
    with Cluster() as cluster:
        cluster.add("master-2", "parallelrun_master.main", "--leaders", "1")
        in_seconds(cluster, 3)
        job_id = the_only_job(cluster)
        fired = [cluster.log(name).count('"schedule_fired"') for name in ("master", "master-2")]
        assert sum(fired) >= 1
        cluster.kill("master")
        cluster.kill("master-2")
        in_seconds(cluster, 1, number=2)
        assert job_ids(cluster.root) == [job_id]  # nobody is there who could make another one
        cluster.start("master")
        cluster.until(lambda: len(job_ids(cluster.root)) == 2, "what was missed is made up")


def a_master_dies_at(point: str, mark: Path, without: str = "") -> None:
    with Cluster(failpoints=f"{point}=kill:{mark}", without=without) as cluster:
        in_seconds(cluster, 1)
        cluster.until(mark.exists, "the master dies")
        cluster.processes["master"].wait(10)
        cluster.start("master")
        the_only_job(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["fire.decided", "fire.launched"])
def test_a_job_that_is_due_is_made_once_also_when_the_master_dies_meanwhile(point: str, tmp_path: Path) -> None:
    a_master_dies_at(point, tmp_path / "reached")


@pytest.mark.slow
def test_what_a_dead_master_has_decided_is_lost_if_nobody_goes_on(tmp_path: Path) -> None:
    with expect_failure():
        a_master_dies_at("fire.decided", tmp_path / "reached", "fire.completed")


@pytest.mark.slow
def test_a_pipeline_is_made_and_led_like_any_other() -> None:
    step = {"type": "command", "compute": "azureml:cpu", "environment": "azureml:any:1"}
    folder = {"type": "uri_folder"}
    made = {**step, "command": "echo ${{name}} > ${{outputs.out}}/a.txt", "outputs": {"out": folder}}
    used = {**step, "command": "cat ${{inputs.of}}/a.txt", "inputs": {"of": "${{parent.jobs.make.outputs.out}}"}}
    with Cluster(api=True) as cluster:
        start = utc_time(time.time() + 2).replace(microsecond=0).isoformat()
        document = {
            "trigger": {"type": "recurrence", "frequency": "hour", "interval": 1, "start_time": start},
            "create_job": {"type": "pipeline", "jobs": {"make": made, "use": used}},
        }
        answer = httpx.put(f"{cluster.api_url}/v1/schedules/nightly", json=document)
        assert answer.status_code == 201, answer.text
        cluster.until(lambda: len(fires(cluster.root)) == 1, "it fires")
        _, fire = next(ScheduleStore(cluster.root).fires("nightly").latest_first())
        result = cluster.result(fire.job_id)
        assert result.state is JobState.COMPLETED, result.failure
        commands = [
            JobFolder(cluster.root, job_id).record().spec.get("command", "") for job_id in job_ids(cluster.root)
        ]
        assert len(commands) == 3
        assert any(f"echo {fire.job_id}" in command for command in commands)
