"""A service's RQ workers: a number of processes, restarted when they die, ended in order.

They are forked from a process that has imported everything, so a worker, and the process that it forks for each entry,
starts within milliseconds.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import psutil
from rq import Worker
from rq.serializers import JSONSerializer

from parallelrun_core.service.process import die_with_parent
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.connection import connect
from parallelrun_core.store.rq_queues import queue

log = logger()

_STOP_S = 10.0
_LONGEST_LISTEN_S = 5


class _Worker(Worker):
    """An RQ worker that soon notices when Redis is back, and when its connection is dead."""

    max_connection_wait_time = 1.0

    @property
    def connection_timeout(self) -> int:
        return self.dequeue_timeout + 2

    def setup_work_horse_signals(self) -> None:
        """Let the process that runs an entry end with this worker, too, not only with the supervisor's `stop`."""
        super().setup_work_horse_signals()  # type: ignore[no-untyped-call]
        die_with_parent()

    def subscribe(self) -> None:
        """Don't listen for RQ's remote commands: nobody sends any, and ending the listening thread takes a second."""


class RqWorkers:
    """Keeps `count` RQ workers on one queue (RQ protects a popped entry only for workers of a single queue)."""

    def __init__(self, redis_url: str, queue_name: str, count: int, *, listen_s: float = _LONGEST_LISTEN_S) -> None:
        """`listen_s`: for so long, Redis may hand an entry to a worker that was cut off, where it is lost."""
        # RQ listens for 15 s less than its time to live, by default for minutes.
        self._ttl_s = 15 + max(1, min(int(listen_s), _LONGEST_LISTEN_S))
        self._redis_url = redis_url
        self._queue_name = queue_name
        self._count = count
        self._pids: set[int] = set()

    def keep_running(self) -> None:
        """Start missing workers."""
        for pid in list(self._pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._pids.discard(pid)
                log.warning("rq_worker_ended", pid=pid, exit_code=os.waitstatus_to_exitcode(status))
        while len(self._pids) < self._count:
            self._pids.add(self._fork())

    def _fork(self) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            die_with_parent()
            redis = connect(self._redis_url)
            worker = _Worker(
                [queue(redis, self._queue_name)],
                connection=redis,
                serializer=JSONSerializer,
                worker_ttl=self._ttl_s,
            )
            worker.log.setLevel("ERROR")
            worker.work(logging_level="ERROR", with_scheduler=False)
            code = 0
        except Exception as error:
            log.error("rq_worker_failed", error=f"{type(error).__name__}: {error}")
        finally:
            os._exit(code)

    def stop(self) -> None:
        """Ask the processes that run an entry to end, then the workers; kill those that are left after a while."""
        workers = [psutil.Process(pid) for pid in self._pids if psutil.pid_exists(pid)]
        asked: set[psutil.Process] = set()
        until = time.monotonic() + _STOP_S
        while self._pids and time.monotonic() < until:
            # Again and again: a worker that is just taking an entry forks a process for it after our first look.
            entries = {each for each in psutil.Process().children(recursive=True) if each.pid not in self._pids}
            for process in (*(entries - asked), *(set(workers) - asked)):
                _signal(process, signal.SIGTERM)
                asked.add(process)
            for pid in list(self._pids):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    self._pids.discard(pid)
            time.sleep(0.02)  # children end one by one; there is no single event to wait for
        for process in asked:
            _signal(process, signal.SIGKILL)


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
