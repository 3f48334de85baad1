"""RQ's workers and what they run, with a supervisor of their own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from select import select
from typing import IO, TYPE_CHECKING, Any

import psutil
import pytest
from rq.exceptions import StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer

from parallelrun_core.ids import new_job_id
from parallelrun_core.store.fast_path import in_one_step
from parallelrun_core.store.rq import workers as rq_workers
from parallelrun_core.store.rq.entries import (
    CONCATENATE,
    LEAD,
    NO_TIMEOUT,
    REMEMBER_FAILED_S,
    EntryKind,
    new_entry,
    queue,
)
from parallelrun_core.store.rq.queue_watch import QueueWatch
from parallelrun_core.store.rq.wake import ask_for_concatenation, ask_for_leader, has_concatenation_failed
from tests.redis_server import with_this_process

if TYPE_CHECKING:
    from redis import Redis

PATIENCE_S = 60.0
SUPERVISOR = """
import sys, time
from parallelrun_core.store.rq.entries import EntryKind
from parallelrun_core.store.rq.workers import RqWorkers
RqWorkers(sys.argv[1], EntryKind("entries", "sleep"), lambda job_id: time.sleep(600), 1).keep_running()
time.sleep(600)
"""
GROWING = """
import sys, time
from pathlib import Path
from parallelrun_core.service.process import StopSignal
from parallelrun_core.store.rq import workers
from parallelrun_core.store.rq.entries import EntryKind

def wait_for_file(job_id):
    while not Path(sys.argv[2]).exists() and not Path(f"{sys.argv[2]}.{job_id}").exists():
        time.sleep(0.01)

def check():
    while Path(sys.argv[2] + ".hold").exists():
        Path(sys.argv[2] + ".held").touch()
        time.sleep(0.01)

workers._SPARE_S = 0.5
entries = workers.RqWorkers(sys.argv[1], EntryKind("entries", "sleep"), wait_for_file, 3, listen_s=1)
entries.supervise(StopSignal(), check)
"""

TWICE = """
import os, sys, time
from pathlib import Path
from parallelrun_core.service.process import StopSignal
from parallelrun_core.store.rq.entries import EntryKind
from parallelrun_core.store.rq.workers import RqWorkers

def wait_if_first(job_id):
    try:
        os.close(os.open(sys.argv[2] + ".begun", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return  # as a leader of a job that is led
    while not Path(sys.argv[2]).exists():
        time.sleep(0.01)

RqWorkers(sys.argv[1], EntryKind("entries", "sleep"), wait_if_first, 2, listen_s=1).supervise(StopSignal())
"""

NEXT = """
import os, signal, sys, time
from pathlib import Path
from parallelrun_core.service.process import StopSignal
from parallelrun_core.store.rq.entries import EntryKind
from parallelrun_core.store.rq.workers import RqWorkers

stopped = []

def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stopped.append(True)

def note_and_wait(job_id):
    signal.signal(signal.SIGTERM, stop)
    with open(sys.argv[2] + ".ran", "a") as ran:
        ran.write(f"{os.getpid()} {job_id}\\n")
    while not stopped and not Path(f"{sys.argv[2]}.{job_id}").exists():
        time.sleep(0.01)

def note_end():
    with open(sys.argv[2] + ".ended", "a") as ended:
        ended.write(f"{os.getpid()}\\n")

workers = RqWorkers(sys.argv[1], EntryKind("entries", "sleep"), note_and_wait, 1, listen_s=1, at_end=note_end)
workers.supervise(StopSignal())
"""


@contextmanager
def started(text: str, *arguments: object, output: IO[bytes] | None = None) -> Iterator[psutil.Popen]:
    """A supervisor that is this program; it and all that it has started end with this context."""
    command = [*with_this_process(), sys.executable, "-c", text, *map(str, arguments)]
    with psutil.Popen(command, stdout=output, stderr=output) as supervisor:
        try:
            yield supervisor
        finally:
            with suppress(psutil.NoSuchProcess):
                supervisor.suspend()  # so that it replaces none of those that are killed
                for each in [*supervisor.children(recursive=True), supervisor]:
                    with suppress(psutil.NoSuchProcess):
                        each.kill()


def going_on(redis_url: str, home: Path, text: str = "") -> AbstractContextManager[psutil.Popen]:
    """A supervisor with one worker, whose process waits in each entry for a file that is named after its job."""
    return started(text or NEXT, redis_url, home / "entry")


def ran(home: Path) -> list[tuple[int, str]]:
    """The process and the job of each entry that has begun, in order."""
    path = home / "entry.ran"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(pid), job_id) for pid, job_id in map(str.split, lines)]


@pytest.fixture
def supervisor(redis: Redis, redis_url: str) -> Iterator[psutil.Popen]:
    """A supervisor with one worker, which runs an entry that takes long."""
    queue(redis, EntryKind("entries", "sleep")).enqueue("sleep", new_job_id())
    with started(SUPERVISOR, redis_url) as process:
        yield process


def forked(supervisor: psutil.Popen) -> tuple[psutil.Process, psutil.Process]:
    """The worker, and the process that runs its entry."""
    until = time.monotonic() + PATIENCE_S
    while len(found := supervisor.children(recursive=True)) < 2:
        assert time.monotonic() < until
        assert supervisor.poll() is None
        time.sleep(0.01)
    worker, entry = sorted(found, key=lambda each: each.ppid() != supervisor.pid)
    return worker, entry


def wait_for_end(*processes: psutil.Process) -> None:
    """Their parent has died, and perhaps nobody else collects what has ended."""
    until = time.monotonic() + PATIENCE_S
    while not all(map(has_ended, processes)):
        assert time.monotonic() < until
        time.sleep(0.01)


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_worker_whose_supervisor_was_killed_ends_after_what_it_runs(supervisor: psutil.Popen) -> None:
    worker, entry = forked(supervisor)
    supervisor.kill()
    supervisor.wait()
    assert entry.is_running()
    entry.terminate()
    wait_for_end(worker, entry)


def test_what_a_killed_worker_ran_ends_with_it(supervisor: psutil.Popen) -> None:
    worker, entry = forked(supervisor)
    worker.kill()
    wait_for_end(entry)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what other processes do to files, keys and their children, of which nobody is told."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def wait_for_workers(supervisor: psutil.Popen, count: int, *, entries: int = 0) -> None:
    until = time.monotonic() + PATIENCE_S
    while (len(supervisor.children()), len(supervisor.children(recursive=True))) != (count, count + entries):
        assert time.monotonic() < until
        time.sleep(0.01)  # who has forked a process is told; others have to look


def test_an_entry_begins_while_a_check_takes_long(redis: Redis, redis_url: str, tmp_path: Path) -> None:
    entries = queue(redis, EntryKind("entries", "sleep"))
    with started(GROWING, redis_url, tmp_path / "end") as supervisor:
        wait_for_workers(supervisor, 1)
        entries.enqueue("sleep", new_job_id())
        wait_for_workers(supervisor, 1, entries=1)
        hold, held = tmp_path / "end.hold", tmp_path / "end.held"
        hold.touch()
        wait_until(held.exists)
        time.sleep(2 * rq_workers._SLOW_CHECK_S)  # how long a check takes is what this is about
        hold.unlink()
        wait_for_workers(supervisor, 2, entries=1)  # one listens from now on
        held.unlink()
        hold.touch()
        wait_until(held.exists)
        entries.enqueue("sleep", new_job_id())
        wait_for_workers(supervisor, 2, entries=2)


def test_a_worker_that_is_told_to_end_does_not_listen(redis_url: str) -> None:
    supervisor = rq_workers.RqWorkers(redis_url, EntryKind("entries", "sleep"), print, 3)
    supervisor._idle_since = {101: None, 102: time.monotonic()}
    assert not supervisor._may_need_more
    supervisor._retiring = 102
    assert supervisor._may_need_more


def test_rq_workers_are_as_many_as_have_something_to_do(redis: Redis, redis_url: str, tmp_path: Path) -> None:
    end = tmp_path / "end"
    entries = queue(redis, EntryKind("entries", "sleep"))
    with started(GROWING, redis_url, end) as supervisor:
        wait_for_workers(supervisor, 1)
        entries.enqueue("sleep", new_job_id())
        wait_for_workers(supervisor, 1, entries=1)
        wait_until(lambda: "blmove" in [client["cmd"] for client in redis.client_list()])  # the supervisor listens
        assert len(supervisor.children()) == 1
        second = new_job_id()
        entries.enqueue("sleep", second)
        wait_for_workers(supervisor, 2, entries=2)
        (tmp_path / f"end.{second}").touch()
        wait_for_workers(supervisor, 1, entries=1)
        for _ in range(4):
            entries.enqueue("sleep", new_job_id())
        wait_for_workers(supervisor, 3, entries=3)  # no more than it may have
        end.touch()
        wait_for_workers(supervisor, 1)
        assert not entries.count  # nothing was lost when the others ended
        end.unlink()
        entries.enqueue("sleep", new_job_id())
        wait_for_workers(supervisor, 1, entries=1)
        supervisor.terminate()
        assert supervisor.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("is_first", [True, False])
def test_a_new_entry_is_what_rq_itself_would_have_put_into_the_queue(redis: Redis, *, is_first: bool) -> None:
    entries, kind = queue(redis, LEAD), LEAD
    entries.enqueue(
        kind.function, "job_1", job_id="of-rq", job_timeout=NO_TIMEOUT, result_ttl=0, failure_ttl=REMEMBER_FAILED_S,
        description=f"{kind.function} job_1",
    )  # fmt: skip
    in_one_step(redis, new_entry(kind, "job_1", "ours", is_first=is_first))
    assert entries.job_ids == (["ours", "of-rq"] if is_first else ["of-rq", "ours"])
    ours, theirs = (Job.fetch(entry_id, redis, JSONSerializer) for entry_id in ("ours", "of-rq"))
    assert ours.created_at >= theirs.created_at
    of_its_own = {"created_at", "enqueued_at", "data"}
    fields, fields_of_rq = ours.to_dict(), theirs.to_dict()
    assert {name: value for name, value in fields.items() if name not in of_its_own} == {
        name: value for name, value in fields_of_rq.items() if name not in of_its_own
    }
    assert (ours.func_name, ours.args, ours.kwargs) == (theirs.func_name, theirs.args, theirs.kwargs)


def test_an_entry_waits_until_somebody_has_taken_it_and_stays_where_it_is(redis: Redis) -> None:
    waiting = QueueWatch(redis, "rq:queue:entries")
    assert not waiting.has_entry()
    redis.rpush("rq:queue:entries", "taken")
    assert select(waiting.ask(), [], [], PATIENCE_S)[0]
    redis.lpop("rq:queue:entries")
    assert not waiting.has_entry()
    redis.rpush("rq:queue:entries", "first", "second")
    wait_until(waiting.has_entry)
    wait_until(waiting.has_entry)
    assert redis.lrange("rq:queue:entries", 0, -1) == [b"first", b"second"]
    redis.delete("rq:queue:entries")
    assert not waiting.has_entry()
    redis.client_kill_filter(_type="normal", skipme=True)
    wait_until(waiting.has_entry)  # as far as anybody knows


def test_an_entry_that_is_handed_out_twice_ends_without_an_error_and_leaves_nothing(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    """As where the one who asks for a leader finds that the entry is neither in the queue nor begun."""
    end, log = tmp_path / "end", tmp_path / "log"
    entries = queue(redis, EntryKind("entries", "sleep"))
    entries.enqueue("sleep", new_job_id(), job_id="twice")
    with log.open("wb") as output, started(TWICE, redis_url, end, output=output) as supervisor:
        wait_until((tmp_path / "end.begun").exists)
        entries.push_job_id("twice")
        wait_until(lambda: not redis.exists("rq:job:twice"))
        end.touch()
        wait_until(lambda: not any(worker.children() for worker in supervisor.children()))
        supervisor.terminate()
        assert supervisor.wait(PATIENCE_S) == 0
    assert "Error" not in log.read_text()
    assert not redis.keys("rq:job:twice") + redis.keys("rq:executions:*")


def test_a_process_goes_on_with_the_entries_that_wait(redis: Redis, redis_url: str, tmp_path: Path) -> None:
    entries = queue(redis, EntryKind("entries", "sleep"))
    job_ids = [new_job_id() for _ in range(3)]
    for job_id in job_ids:
        entries.enqueue("sleep", job_id, job_id=f"of-{job_id}")
        (tmp_path / f"entry.{job_id}").touch()
    entries.enqueue("os.system", "reboot", job_id="refused")
    with going_on(redis_url, tmp_path) as supervisor:
        wait_until(lambda: not entries.count and not any(worker.children() for worker in supervisor.children()))
        supervisor.terminate()
        assert supervisor.wait(PATIENCE_S) == 0
    assert [job_id for _, job_id in ran(tmp_path)] == job_ids
    assert {str(pid) for pid, _ in ran(tmp_path)} == set((ended := tmp_path / "entry.ended").read_text().split())
    assert len(ended.read_text().splitlines()) == 1
    assert not redis.keys("rq:job:*") + redis.keys("rq:executions:*")


def test_an_entry_whose_process_dies_has_failed_also_if_it_was_not_the_first(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    """Whoever waits for an output learns so that the process which made it has died."""
    check_death(redis, redis_url, tmp_path)


def check_death(redis: Redis, redis_url: str, home: Path, text: str = "") -> None:
    entries = queue(redis, EntryKind("entries", "sleep"))
    first, second, third = (new_job_id() for _ in range(3))
    for job_id in (first, second, third):
        entries.enqueue("sleep", job_id, job_id=f"of-{job_id}")
    for job_id in (first, third):
        (home / f"entry.{job_id}").touch()
    with going_on(redis_url, home, text):
        wait_until(lambda: len(ran(home)) == 2)
        (pid, _), (same_pid, job_id) = ran(home)
        assert (pid, job_id) == (same_pid, second)
        assert redis.hget(f"rq:job:of-{second}", "status") == b"started"
        psutil.Process(pid).kill()
        wait_until(lambda: len(ran(home)) == 3 and not redis.exists(f"rq:job:of-{third}"))
        assert redis.hget(f"rq:job:of-{second}", "status") == b"failed"
        assert not redis.exists(f"rq:job:of-{first}")


TOO_OLD = """
from parallelrun_core.store.rq import next_entries
next_entries._MAX_AGE_S = 0  # as where all is slow
stopped = []
"""
OF_CONCATENATOR = NEXT.replace('EntryKind("entries", "sleep")', "CONCATENATE").replace(
    "import EntryKind", "import CONCATENATE"
)


def test_an_output_that_takes_hours_after_another_one_has_failed_if_its_process_dies(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    first, second = new_job_id(), new_job_id()
    for job_id in (first, second):
        ask_for_concatenation(redis, job_id, attempt="1")
    (tmp_path / f"entry.{first}").touch()
    with going_on(redis_url, tmp_path, OF_CONCATENATOR):
        wait_until(lambda: len(ran(tmp_path)) == 2)
        remembered_s = redis.ttl(f"rq:job:concatenate-{second}-1")
        assert remembered_s == -1 or remembered_s > 24 * REMEMBER_FAILED_S
        psutil.Process(ran(tmp_path)[1][0]).kill()
        wait_until(lambda: has_concatenation_failed(redis, second, attempt="1"))
    assert 0 < redis.ttl(f"rq:job:concatenate-{second}-1") <= REMEMBER_FAILED_S


@pytest.mark.parametrize("goes_on", [True, False], ids=["same process", "another process"])
def test_an_entry_that_is_asked_for_again_while_it_runs_is_run_again(
    redis: Redis, redis_url: str, tmp_path: Path, goes_on: bool
) -> None:
    first, second = new_job_id(), new_job_id()
    for job_id in (first, second):
        ask_for_concatenation(redis, job_id, attempt="1")
    (tmp_path / f"entry.{first}").touch()
    text = OF_CONCATENATOR if goes_on else OF_CONCATENATOR.replace("stopped = []", TOO_OLD)
    with going_on(redis_url, tmp_path, text) as supervisor:
        wait_until(lambda: len(ran(tmp_path)) == 2)
        ask_for_concatenation(redis, second, attempt="1")
        (tmp_path / f"entry.{second}").touch()
        wait_until(lambda: not redis.keys("rq:job:*"))
        supervisor.terminate()
        assert supervisor.wait(PATIENCE_S) == 0
    assert [job_id for _, job_id in ran(tmp_path)] == [first, second, second]


def test_an_entry_that_was_asked_for_again_outlives_the_process_of_the_first_one(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    check_asked_for_again(redis, redis_url, tmp_path)


def check_asked_for_again(redis: Redis, redis_url: str, home: Path, text: str = OF_CONCATENATOR) -> None:
    job_id = new_job_id()
    ask_for_concatenation(redis, job_id, attempt="1")
    with going_on(redis_url, home, text):
        wait_until(lambda: len(ran(home)) == 1)
        ask_for_concatenation(redis, job_id, attempt="1")
        psutil.Process(ran(home)[0][0]).kill()
        wait_until(lambda: len(ran(home)) == 2)
        assert not redis.exists(f"rq:failed:{CONCATENATE.queue}")
        assert not has_concatenation_failed(redis, job_id, attempt="1")


def test_an_id_that_is_no_text_ends_no_process(redis: Redis, redis_url: str, tmp_path: Path) -> None:
    entries = queue(redis, EntryKind("entries", "sleep"))
    first, odd, last = (new_job_id() for _ in range(3))
    for job_id in (first, odd, last):
        entries.enqueue("sleep", job_id, job_id=f"of-{job_id}")
        (tmp_path / f"entry.{job_id}").touch()
    raw: Any = b"\xff" * 1000
    redis.rename(f"rq:job:of-{odd}", "rq:job:" + raw.decode(errors="replace"))
    redis.lset(entries.key, 1, raw)
    with going_on(redis_url, tmp_path):
        wait_until(lambda: not entries.count and len(ran(tmp_path)) == 2)
    (pid, _), (last_pid, job_id) = ran(tmp_path)
    assert (last_pid, job_id) == (pid, last)


def test_a_process_that_is_told_to_stop_takes_no_other_entry(redis: Redis, redis_url: str, tmp_path: Path) -> None:
    check_stop(redis, redis_url, tmp_path)


def check_stop(redis: Redis, redis_url: str, home: Path, text: str = "") -> None:
    entries = queue(redis, EntryKind("entries", "sleep"))
    first, second, third = (new_job_id() for _ in range(3))
    for job_id in (first, second, third):
        entries.enqueue("sleep", job_id)
    (home / f"entry.{first}").touch()
    with going_on(redis_url, home, text) as supervisor:
        wait_until(lambda: len(ran(home)) == 2)
        supervisor.terminate()
        assert supervisor.wait(PATIENCE_S) == 0
    assert [job_id for _, job_id in ran(home)] == [first, second]
    assert len(entries.job_ids) == 1  # for another master


def test_what_a_worker_writes_of_its_entry_into_a_wiped_redis_keeps_no_leader_away(redis: Redis) -> None:
    """RQ's worker says that its entry is started, of which the rest is gone."""
    job_id = new_job_id()
    redis.hset(f"rq:job:lead-{job_id}-0", mapping={"status": "started", "origin": LEAD.queue, "data": "[]"})
    redis.zadd(f"rq:executions:lead-{job_id}-0", {"gone": 2e9})
    ask_for_leader(redis, job_id)
    (entry,) = queue(redis, LEAD).get_jobs()
    assert [*entry.args] == [job_id]


class Freed:
    """Something during whose end this process is told to stop."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))


def free_something() -> None:
    Freed()
    time.sleep(PATIENCE_S)  # until it is told again


def test_a_worker_that_is_told_to_stop_while_it_frees_something_stops(redis: Redis) -> None:
    entries = queue(redis, LEAD)
    worker = rq_workers._Worker([entries], connection=redis, job_class=entries.job_class, serializer=JSONSerializer)
    numbers = (signal.SIGTERM, signal.SIGINT)
    handlers = [signal.signal(number, worker.request_stop) for number in numbers]
    try:
        with pytest.raises(StopRequested):
            free_something()
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
