"""A concatenation on a real server: what its leader hears of it, whatever is in the way."""

from __future__ import annotations

import errno
import hashlib
import signal
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from redis.exceptions import ConnectionError

from parallelrun_concatenator import bad_places, parts
from parallelrun_concatenator import concatenate as concatenating
from parallelrun_concatenator.concatenate import Concatenation, concatenate
from parallelrun_concatenator.output import BlockWriter, Merged
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_concatenator.settings import ConcatenatorSettings
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.concatenation_lock import renew_concatenation
from parallelrun_core.store.outcome_stream import Concatenated
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.outcome import LostRows
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leader.output_requests import OutputRequests
from tests.integration.queue.job_on_redis import JobOnRedis, message
from tests.unit.core.factories import names_in, outcome

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

ROWS = b"one\ntwo\n"


class Job:
    """A job that is finalizing."""

    def __init__(self, redis: Redis, url: str, root: Path, output: str = "", rows: bytes = ROWS) -> None:
        self.settings = ConcatenatorSettings(redis_url=url, root=root)
        self.on_redis = JobOnRedis(redis)
        self.on_redis.registry.move(self.on_redis.job_id, JobState.FINALIZING)
        self.folder = JobFolder(root, self.on_redis.job_id)
        spec = JobSpec.parse({"entry_script": "a.py", "inputs": str(root), "output": output})
        self.on_redis.keys_folder = self.folder.keys
        self.folder.create(
            JobRecord(job_id=self.on_redis.job_id, submitted=1.0, code="c", spec=spec.model_dump(mode="json"))
        )
        self.folder.layout.make_folders()
        self.schedule(1, term=1)
        (self.folder.parts / "part").write_bytes(rows)
        log = DecisionWriter(self.folder.path, 1)
        log.add([outcome(0, part="part", length=len(rows), crc=zlib.crc32(rows))])
        log.sync()
        log.close()
        self.output = Path(self.folder.output_file(spec))

    def schedule(self, mini_batches: int, *, term: int) -> None:
        """So many more are all that there will be."""
        manifest = ManifestWriter(self.folder.path, term)
        for number in range(mini_batches):
            manifest.add(message(number), 2)
        manifest.close(order="sorted")

    def concatenate(self) -> None:
        concatenate(self.settings, self.on_redis.job_id)

    def conclude(self, output: bytes) -> None:
        """The leader records how it has ended."""
        result = JobResult(
            job_id=self.on_redis.job_id, state=JobState.COMPLETED, started=1.0, ended=2.0, progress=Progress(),
            output=str(self.output), output_bytes=len(output), output_sha256=hashlib.sha256(output).hexdigest(),
        )  # fmt: skip
        self.folder.conclude(result)

    def told(self) -> list[Concatenated]:
        """What the leader has heard."""
        entries = self.on_redis.entries()
        return [entry.concatenated for entry in entries if entry.concatenated is not None]


@pytest.fixture
def job(redis: Redis, redis_url: str, tmp_path: Path) -> Iterator[Job]:
    handler = signal.getsignal(signal.SIGTERM)
    yield Job(redis, redis_url, tmp_path)
    signal.signal(signal.SIGTERM, handler)


def test_the_output_is_made_and_told(job: Job) -> None:
    job.concatenate()
    assert job.output.read_bytes() == ROWS
    assert [(each.path, each.length) for each in job.told()] == [(str(job.output), len(ROWS))]
    assert not job.on_redis.leader.is_concatenating()


def test_of_two_jobs_with_one_output_the_second_replaces_nothing_and_keeps_its_rows(job: Job, redis: Redis) -> None:
    where = job.folder.root / "shared"
    first, second = (
        Job(redis, job.settings.redis_url, job.folder.root, str(where), rows) for rows in (b"ours\n", b"theirs\n")
    )
    first.concatenate()
    second.concatenate()
    (told,) = second.told()
    assert "appeared after the job was submitted" in told.problem
    assert first.output.read_bytes() == b"ours\n"
    assert names_in(where) == [first.output.name]
    first.output.unlink()
    second.concatenate()
    assert second.output.read_bytes() == b"theirs\n"


def test_an_output_that_the_job_has_ended_with_before_is_replaced(job: Job) -> None:
    job.output.write_bytes(b"one\n")
    job.conclude(b"one\n")
    job.folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
    job.concatenate()
    assert [each.problem for each in job.told()] == [""]
    assert job.output.read_bytes() == ROWS


def led(job: Job, reopening: Reopening | None = None) -> JobContext:
    """What its leader has to do with outputs."""
    leaders: Any = SimpleNamespace(queue=job.on_redis.leader, folder=job.folder, reopening=reopening, damage=[])
    leaders.damaged = leaders.damage.append
    leaders.restore_generation = partial(JobContext.restore_generation, leaders)
    return cast(JobContext, leaders)


def test_what_is_made_of_an_earlier_generation_is_not_the_output_of_the_next(job: Job) -> None:
    """Its report comes when the job has been reopened, and what it lacks is what the user has reopened it for."""
    job.concatenate()
    job.conclude(ROWS)
    earlier = job.on_redis.entries()
    job.folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
    job.on_redis.leader.generation = 1
    requests = OutputRequests(led(job))
    requests.note(earlier)
    before = requests.made
    job.concatenate()
    requests.note(job.on_redis.entries())
    assert before is None
    assert requests.made is not None
    assert (requests.made.path, requests.made.generation) == (str(job.output), 1)


def test_a_generation_that_the_disk_has_lost_is_written_again(job: Job) -> None:
    check_a_lost_generation(job)


def check_a_lost_generation(job: Job) -> None:
    """Lose the record of the last reopening while a leader is at work, and make the output as often as it takes."""
    reopening = Reopening(generation=1, at=1.0, retry_failed=True)
    job.folder.reopen(reopening)
    job.on_redis.leader.generation = 1
    leaders = led(job, reopening)
    requests = OutputRequests(leaders)
    job.folder.layout.reopening(1).unlink()
    for _ in range(2):
        job.concatenate()
        requests.note(job.on_redis.entries())
    assert requests.made is not None, "the job waits for ever"
    assert requests.made.generation == job.folder.generation() == 1
    assert job.output.read_bytes() == ROWS
    assert leaders.damage == ["the record of generation 1 was lost, and is written again"]


def test_rows_of_which_the_books_know_nothing_are_missed_and_nothing_is_published(job: Job) -> None:
    job.schedule(2, term=2)
    job.concatenate()
    (told,) = job.told()
    assert told.problem == "The output can't be put together: 2 of 3 mini-batches have no decision"
    assert not job.output.exists()


def test_an_error_that_nobody_has_thought_of_is_told_as_the_reason(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concatenating, "assembler_of", lambda *_: 1 / 0)
    job.concatenate()
    (told,) = job.told()
    assert told.problem == "The output can't be put together: ZeroDivisionError: division by zero"
    assert not job.output.exists()


@pytest.mark.parametrize("call", ["status", "state"], ids=["at its beginning", "at its end"])
def test_a_redis_that_is_away_is_no_fault_of_the_output_which_another_one_makes(
    job: Job, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, calls = getattr(Registry, call), 0

    def away(registry: Registry, job_id: str) -> object:
        nonlocal calls
        calls += 1
        if call == "state" and calls == 1:
            return ask(registry, job_id)
        raise ConnectionError("Connection refused")

    monkeypatch.setattr(concatenating, "_PATIENCE_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Registry, call, away)
        job.concatenate()
    assert calls > (call == "state")
    assert job.told() == []
    assert names_in(job.output.parent) == []
    assert not job.on_redis.leader.is_concatenating()
    job.concatenate()
    assert [each.problem for each in job.told()] == [""]
    assert job.output.read_bytes() == ROWS


def test_a_full_disk_and_an_end_of_the_service_postpone_it(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: BlockWriter) -> Merged:
        raise OSError(errno.ENOSPC, "No space left on device")

    def stopped(_: BlockWriter) -> Merged:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the signal was not heard")

    for finish in (full, stopped):
        monkeypatch.setattr(BlockWriter, "finish", finish)
        job.concatenate()
    monkeypatch.undo()
    assert job.told() == [Concatenated("", 0, "", is_postponed=True)] * 2
    assert names_in(job.output.parent) == []
    assert not job.on_redis.leader.is_concatenating()


def test_it_is_seen_to_live_however_long_a_step_takes_and_no_other_begins(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats, made = threading.Semaphore(0), SegmentTable

    def beat(redis: Redis, job_id: str, *, ttl_ms: int) -> None:
        renew_concatenation(redis, job_id, ttl_ms=ttl_ms)
        beats.release()

    def slow_table(folder: Path) -> SegmentTable:
        job.on_redis.redis.delete(job.on_redis.keys.concatenating)  # as if it had run out
        for _ in range(2):
            assert beats.acquire(timeout=30)
        assert job.on_redis.leader.is_concatenating()
        job.concatenate()
        assert job.told() == []
        return made(folder)

    monkeypatch.setattr(concatenating, "_BEAT_S", 0.01)
    monkeypatch.setattr(concatenating, "renew_concatenation", beat)
    monkeypatch.setattr(concatenating, "SegmentTable", slow_table)
    job.concatenate()
    assert len(job.told()) == 1
    assert job.output.read_bytes() == ROWS


def test_trouble_with_a_disk_postpones_it_and_is_named(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(parts._Part, "_read", unreadable)
        job.concatenate()
    problem = f"The output can't be put together: [Errno 5] Input/output error: '{job.folder.parts / 'part'}'"
    assert job.told() == [Concatenated("", 0, "", problem, is_postponed=True)]


@pytest.mark.parametrize("passes_after, is_all_bad", [(9, False), (3, False), (9, True)], ids=["bad", "passes", "away"])
def test_rows_at_a_bad_place_of_the_disk_are_made_again_if_others_can_be_read(
    job: Job, passes_after: int, is_all_bad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.schedule(1, term=2)
    (job.folder.parts / "bad").write_bytes(ROWS)
    with closing(DecisionWriter(job.folder.path, 2)) as log:
        log.add([outcome(1, part="bad", length=len(ROWS), crc=zlib.crc32(ROWS))])
    tries = 0

    def is_intact(_: Path, part: str, *__: int) -> bool:
        nonlocal tries
        tries += part == "bad"
        if (part == "bad" or is_all_bad) and tries < passes_after:
            raise OSError(errno.EIO, "Input/output error")
        return True

    def read(part: parts._Part, *_: int) -> bytes:
        if part._path.name == "bad":
            raise OSError(errno.EIO, "Input/output error")
        return ROWS

    monkeypatch.setattr(parts._Part, "_read", read)
    monkeypatch.setattr(bad_places, "is_intact", is_intact)
    monkeypatch.setattr(bad_places, "PAUSES_S", (0.0, 0.0, 0.0))
    job.concatenate()
    (told,) = job.told()
    lost = [LostRows(1, "bad", 0)]
    assert (told.is_postponed, told.lost) == ((False, lost) if passes_after == 9 and not is_all_bad else (True, []))
    assert f"Input/output error: '{job.folder.parts / 'bad'}'" in told.problem


def test_one_that_waits_for_a_disk_that_does_not_answer_leaves(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    left = threading.Event()

    def stuck(_: Path) -> SegmentTable:
        assert left.wait(30), "it is taken for alive for ever"
        raise OSError(errno.EIO, "the process would have ended")

    monkeypatch.setattr(concatenating, "SegmentTable", stuck)
    monkeypatch.setattr(concatenating, "_BEAT_S", 0.01)
    monkeypatch.setattr(concatenating, "_IDLE_BEATS", 10)
    Concatenation(job.on_redis.redis, job.folder, leave=left.set).run()


def test_a_dead_one_is_not_taken_for_alive_when_the_clock_of_redis_is_set_back(job: Job) -> None:
    renew_concatenation(job.on_redis.redis, job.on_redis.job_id, ttl_ms=3_600_000)
    assert not job.on_redis.leader.is_concatenating()
    job.concatenate()
    assert job.output.read_bytes() == ROWS


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FINALIZING], ids=["ended", "reopened"])
def test_one_that_was_paused_and_wakes_too_late_replaces_no_output(
    job: Job, state: JobState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job has ended meanwhile, with the output of another concatenation, or is finalizing again with more rows."""
    finish = BlockWriter.finish

    def late(output: BlockWriter) -> Merged:
        job.output.write_text("the output of the other")
        job.conclude(b"the output of the other")
        job.folder.reopen(Reopening(generation=1, at=1.0, retry_failed=True))
        job.on_redis.force(state)
        return finish(output)

    monkeypatch.setattr(BlockWriter, "finish", late)
    job.concatenate()
    assert job.output.read_text() == "the output of the other"
    assert names_in(job.output.parent) == [job.output.name]
    assert job.told() == []
