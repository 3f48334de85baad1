"""A service's RQ workers: a number of processes, restarted when they die, ended in order.

They are forked from a process that has imported everything, so a worker, and the process that it forks for each entry,
starts within milliseconds, and with what the supervisor knows: the function that runs needs no settings from elsewhere.
So there need be no more of them than have something to do, and one that listens while none has, where the service has
checks of its own: else the supervisor listens (`queue_watch.py`), or one more worker where those checks take long. A
process that has run its entry goes on with those that wait (`next_entries.py`).
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import Timer
from traceback import walk_stack
from types import FrameType
from typing import Final, cast

import psutil
from rq import Queue, Worker
from rq.exceptions import StopRequested
from rq.executions import Execution
from rq.job import Job
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.utils import now, utcformat, utcparse

from parallelrun_core.service.process import StopSignal, descendants, die_with_parent
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect
from parallelrun_core.store.rq.entries import Entry, EntryKind, queue
from parallelrun_core.store.rq.next_entries import RunningEntry, change_own, note_death, run_next_entries
from parallelrun_core.store.rq.queue_watch import QueueWatch

log = logger()

_CHECK_S = 1.0
_STOP_S = 10.0
_LIST_AGAIN_S = 0.02
_LONGEST_LISTEN_S = 5
_SPARE_S: Final = 30.0
_SLOW_CHECK_S: Final = 0.5
"""Where a check has taken longer, a worker listens from then on: the supervisor can't while it checks."""
"""For how long a worker listens beside another one before it is ended: forking one costs as much as a minute of it."""
_REPORT: Final = struct.Struct("=q?")
_READ_BYTES: Final = 4096 * _REPORT.size


class _Exchange:
    """Messages between a supervisor and its workers: who runs an entry, and who is to end. Shared by forking."""

    def __init__(self, reports: tuple[int, int], retiring: mmap.mmap) -> None:
        self._reports, self._reports_end = reports
        self._retiring = retiring

    @classmethod
    def create(cls) -> _Exchange:
        """A new one, before any worker is forked."""
        reports = os.pipe()
        os.set_blocking(reports[0], False)
        return cls(reports, mmap.mmap(-1, mmap.PAGESIZE))

    @property
    def fd(self) -> int:
        """The descriptor that is readable when a worker has begun or ended an entry."""
        return self._reports

    @contextmanager
    def running_entry(self) -> Iterator[None]:
        """For a worker: report that it runs an entry, and at the end that it listens again."""
        os.write(self._reports_end, _REPORT.pack(os.getpid(), True))  # atomic, as it is short
        try:
            yield
        finally:
            os.write(self._reports_end, _REPORT.pack(os.getpid(), False))

    def is_to_retire(self) -> bool:
        """For a worker: return whether it is the one that is to end while it has nothing to do."""
        return int.from_bytes(self._retiring[:8], "little") == os.getpid()

    def retire(self, pid: int) -> None:
        """For the supervisor: let this worker end; 0: none."""
        self._retiring[:8] = pid.to_bytes(8, "little")

    def reports(self) -> Iterator[tuple[int, bool]]:
        """For the supervisor: each worker that has begun or ended an entry since the last call, in order."""
        with suppress(BlockingIOError):
            while data := os.read(self._reports, _READ_BYTES):
                yield from _REPORT.iter_unpack(data)


class _Worker(Worker):
    """An RQ worker that runs one function only, and soon notices when Redis is back or its connection is dead."""

    exchange: _Exchange
    """Set once, before it works: RQ's constructor takes no more arguments. So are the other three."""
    at_end: Callable[[], object]
    running: RunningEntry
    linger_s: int
    max_connection_wait_time = 1.0
    """RQ waits for up to a minute before it tries again to reach Redis; a job would wait as long for its leader."""

    @property
    def should_run_maintenance_tasks(self) -> bool:
        """RQ asks this whenever it has no entry in hand, which is when a worker can end without losing one."""
        if self.exchange.is_to_retire():
            raise StopRequested
        return bool(super().should_run_maintenance_tasks)

    @property
    def connection_timeout(self) -> int:
        """RQ would notice 10 s after its time that no answer comes, and a leader is to be replaced within 5 s."""
        return self.dequeue_timeout + 2

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """Stop, but not while an object is freed: RQ raises an exception, and Python drops one that is raised there."""
        if any(each.f_code.co_name == "__del__" for each, _ in walk_stack(frame)):
            Timer(_LIST_AGAIN_S, os.kill, (os.getpid(), signum)).start()
        else:
            super().request_stop(signum, frame)  # type: ignore[no-untyped-call]

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Refuse an entry before a process is forked for it, if it asks for anything but this worker's function."""
        entry = cast(Entry, job)
        if entry.requested_job_id() is None:
            entry.report_refused(job.id, "it asks for what isn't done here")
            self.connection.delete(job.key)
            queue.intermediate_queue.remove(job.id)
            return
        with self.exchange.running_entry():
            super().execute_job(job, queue)
            note_death(queue, self.running, worker=self.name)

    def perform_job(self, job: Job, queue: Queue, execution: Execution) -> bool:
        """Run an entry, in the process that was forked for it, and then those that wait."""
        since = time.monotonic()
        try:
            is_done = super().perform_job(job, queue, execution)
            if is_done:
                run_next_entries(queue, self.running, since, self.linger_s, worker=self.name)
        finally:
            self.at_end()
        return is_done

    def handle_job_success(
        self, job: Job, queue: Queue, started_job_registry: StartedJobRegistry, execution: Execution
    ) -> None:
        """Remove an entry that is done, if this worker still has it: RQ would remove one that another worker has, too,
        or that was enqueued again."""
        self._forget_execution(job, execution)
        change_own(queue, job.key, self.name, lambda pipe: pipe.delete(job.key))
        if not self.connection.hexists(job.key, "status"):
            self.connection.delete(job.key)  # of what was removed, RQ has written a part again

    def handle_job_failure(
        self,
        job: Job,
        queue: Queue,
        started_job_registry: StartedJobRegistry | None = None,
        exc_string: str = "",
        execution: Execution | None = None,
    ) -> None:
        """Note that an entry has failed, if this worker still has it: RQ would note it of one that was enqueued again,
        too, and whoever waits for that one would take it for dead."""
        if self.connection.hget(job.key, "worker_name") == self.name.encode():
            super().handle_job_failure(job, queue, started_job_registry, exc_string, execution)
        else:
            self._forget_execution(job, execution)

    def _forget_execution(self, job: Job, execution: Execution | None) -> None:
        with self.connection.pipeline() as pipeline:
            self.cleanup_execution(job, pipeline=pipeline, execution=execution)
            pipeline.execute()

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        """Hold SIGTERM back until the new process has its own way with it: the worker's handler would swallow it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            super().fork_work_horse(job, queue)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def setup_work_horse_signals(self) -> None:
        """Let the process that runs an entry end with this worker, too, not only with the supervisor's `stop`."""
        super().setup_work_horse_signals()  # type: ignore[no-untyped-call]
        die_with_parent()
        if os.getppid() != self.pid:  # it ended before the kernel was asked
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def subscribe(self) -> None:
        """Don't listen for RQ's remote commands: nobody sends any, and ending the listening thread takes a second."""


class RqWorkers:
    """Keeps `count` RQ workers on one queue (RQ protects a popped entry only for workers of a single queue).

    Args:
        run: called with the id of each job that comes, in a process of its own that is forked from this one.
        listen_s: for so long, Redis may hand an entry to a worker that was cut off, where it is lost.
        linger_s: for so long, a process that has run an entry waits for the next one.
        at_end: called where such a process ends in order, to close what it has opened for itself.
    """

    def __init__(
        self,
        redis_url: str,
        kind: EntryKind,
        run: Callable[[str], object],
        count: int,
        *,
        listen_s: float = _LONGEST_LISTEN_S,
        linger_s: int = 0,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        # RQ listens for 15 s less than its time to live, by default for minutes.
        self._ttl_s = 15 + max(1, min(int(listen_s), _LONGEST_LISTEN_S))
        self._redis_url = redis_url
        self._kind = kind
        self._run = run
        self._count = count
        self._linger_s = linger_s
        self._at_end = at_end
        self._idle_since: dict[int, float | None] = {}
        """By each worker's process id: since when it has had nothing to do; None: it runs an entry."""
        self._retiring = 0
        """The process id of the worker that is to end; 0: none."""
        self._keeps_one = True
        """Whether a worker listens while none has anything to do: an entry is 10 ms sooner with one."""
        self._is_check_slow = False
        """Whether a check has taken so long that no entry is to wait for another one."""
        self.connected = False
        """Whether Redis answered at the last check."""

    @cached_property
    def _exchange(self) -> _Exchange:
        return _Exchange.create()

    @cached_property
    def _queue_watch(self) -> QueueWatch:
        redis = connect(self._redis_url)
        return QueueWatch(redis, queue(redis, self._kind).key)

    def supervise(self, stop: StopSignal, check: Callable[[], object] | None = None) -> None:
        """Keep the workers running until the signal comes, and end them then.

        Args:
            check: called every second, while the workers run; asks Redis, and may raise one of `CONNECTION_ERRORS`.
        """
        self._keeps_one = check is not None
        warm_up()
        redis = connect(self._redis_url)
        check_at = time.monotonic()
        while not stop.came:
            if time.monotonic() >= check_at:
                try:
                    if check is None or not self.connected:  # otherwise the last check has found Redis there
                        redis.ping()
                    self.keep_running()  # first: the check may take long, and others wait for them
                    if check is not None:
                        began = time.monotonic()
                        check()
                        self._is_check_slow |= time.monotonic() - began > _SLOW_CHECK_S
                    self.connected = True
                except CONNECTION_ERRORS as error:
                    self.connected = False
                    log.warning("redis_away", error=str(error))
                check_at = time.monotonic() + _CHECK_S
            elif self.connected:  # a worker has begun or ended an entry, or one waits
                self._start_missing()
            waiting = self._queue_watch.ask() if self.connected and self._may_need_more else ()
            stop.wait_readable((self._exchange.fd, *waiting), check_at - time.monotonic())
        self.stop()

    def keep_running(self) -> None:
        """Start missing workers, and let one end that others don't need."""
        for pid in list(self._idle_since):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._idle_since[pid]
                if pid != self._retiring:
                    log.warning("rq_worker_ended", pid=pid, exit_code=os.waitstatus_to_exitcode(status))
        self._start_missing()
        idle = [(since, pid) for pid, since in self._idle_since.items() if since is not None]
        may_spare = len(idle) > self._is_check_slow and len(self._idle_since) > self._keeps_one
        longest_s = time.monotonic() - min(idle)[0] if may_spare else 0.0
        self._retiring = min(idle)[1] if longest_s > _SPARE_S else 0
        self._exchange.retire(self._retiring)

    def _start_missing(self) -> None:
        for pid, is_busy in self._exchange.reports():
            if pid in self._idle_since:
                self._idle_since[pid] = None if is_busy else time.monotonic()
        must_listen = self._is_check_slow or (self._keeps_one and not self._idle_since)
        while self._may_need_more and (must_listen or self._queue_watch.has_entry()):
            self._idle_since[self._fork()] = time.monotonic()

    @property
    def _may_need_more(self) -> bool:
        """Return whether there may be one more worker, and none listens."""
        listening = [since for pid, since in self._idle_since.items() if pid != self._retiring]
        return len(self._idle_since) < self._count and not any(listening)

    def _fork(self) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            die_with_parent()
            redis = connect(self._redis_url)
            entries = queue(redis, self._kind, self._run)
            worker = _Worker(
                [entries],
                connection=redis,
                job_class=entries.job_class,
                serializer=JSONSerializer,
                worker_ttl=self._ttl_s,
            )
            worker.exchange, worker.running = self._exchange, RunningEntry.create()
            worker.linger_s, worker.at_end = self._linger_s, self._at_end
            worker.log.setLevel("ERROR")
            worker.work(logging_level="ERROR", with_scheduler=False)
            code = 0
        except Exception as error:
            log.error("rq_worker_failed", error=f"{type(error).__name__}: {error}")
        finally:
            os._exit(code)

    def stop(self) -> None:
        """Ask the processes that run an entry to end, then the workers; kill those that are left after a while."""
        workers = [psutil.Process(pid) for pid in self._idle_since if psutil.pid_exists(pid)]
        signalled: set[psutil.Process] = set()
        until = time.monotonic() + _STOP_S
        # It ends a wait below then, unless another thread gets it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        while self._idle_since and time.monotonic() < until:
            # Again and again: a worker that is just taking an entry forks a process for it after our first list.
            entries = self._entries()
            for process in (*(entries - signalled), *(set(workers) - signalled)):
                _signal(process, signal.SIGTERM)
                signalled.add(process)
            self._wait_for_ends(_LIST_AGAIN_S)
        for process in signalled:
            _signal(process, signal.SIGKILL)

    def _entries(self) -> set[psutil.Process]:
        """Return the processes that run entries, and those below them; psutil looks at each of the machine for that."""
        below, entries = descendants(), set()
        if below is None:
            below = {each.pid for each in psutil.Process().children(recursive=True)}
        for pid in below - self._idle_since.keys():
            with suppress(psutil.NoSuchProcess):
                entries.add(psutil.Process(pid))
        return entries

    def _wait_for_ends(self, most_s: float) -> None:
        """Take note of each worker that ends, for so long, or until all have."""
        until = time.monotonic() + most_s
        while True:
            for pid in list(self._idle_since):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self._idle_since[pid]
            left_s = until - time.monotonic()
            if not self._idle_since or left_s <= 0:
                return
            signal.sigtimedwait({signal.SIGCHLD}, left_s)


def warm_up() -> None:
    """Make what RQ reads times with, in the process from which workers are forked: 5 ms and 2 MB in each of them."""
    utcparse(utcformat(now()))


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
