"""Celery with Redis as its broker: two prefork processes, `acks_late`, everything else at its default.

Its own results would cost a key for each task. So the tasks' results are ignored, and the rows go to a list on the same
Redis, which is read by the hundred: about what one would do to make it fast.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from celery import Celery
from redis import Redis

from benchmarks.rivals.work import WORKERS, WORKS, Run, Work

_SOCKET: Final = "BENCHMARKS_CELERY_REDIS"
_ROWS: Final = "rows"
_UP: Final = "up"
_READY_WITHIN_S = 60.0
_FETCH = 500

app: Any = Celery("rival", broker=f"redis+socket://{os.environ.get(_SOCKET, '')}")
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)


@cache
def _redis(pid: int) -> Redis:
    """This process's connection: a forked one has its own."""
    return Redis(unix_socket_path=os.environ[_SOCKET])


def _run_task(what: str, paths: list[str]) -> None:
    _redis(os.getpid()).rpush(_ROWS, json.dumps(WORKS[what](paths)))


def _tell_task() -> None:
    time.sleep(0.05)  # so that the other process gets some of these, too
    _redis(os.getpid()).rpush(_UP, os.getpid())


run_task = app.task(name="run")(_run_task)
tell_task = app.task(name="tell")(_tell_task)


def _until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + _READY_WITHIN_S
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"Celery is not ready after {_READY_WITHIN_S:.0f} s")
        time.sleep(0.1)


def _all_are_up(redis: Redis) -> bool:
    told: Any = redis.lrange(_UP, 0, -1)
    for _ in range(WORKERS):
        tell_task.delay()
    return len(set(told)) == WORKERS


def _run(redis: Redis, what: str, mini_batches: list[list[str]]) -> Iterable[list[str]]:
    for paths in mini_batches:
        run_task.delay(what, paths)
    left = len(mini_batches)
    while left:
        found: Any = redis.lpop(_ROWS, _FETCH)
        for row in found or ():
            yield json.loads(row)
            left -= 1
        if not found:
            time.sleep(0.002)


@contextmanager
def _running(command: list[str], log: IO[bytes]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def ready(work: Work, scratch: Path, redis_server: str) -> Iterator[Run]:
    """A Redis that keeps nothing, and two processes that have both done something."""
    what = next(name for name, each in WORKS.items() if each is work)
    socket = scratch / "redis.sock"
    os.environ[_SOCKET] = str(socket)
    app.conf.broker_url = f"redis+socket://{socket}"
    listens = ["--port", "0", "--unixsocket", str(socket)]
    keeps_nothing = ["--save", "", "--appendonly", "no", "--dir", str(scratch)]
    processes = ["-P", "prefork", "-c", str(WORKERS), "-l", "ERROR"]
    with (scratch / "log").open("wb") as log, _running([redis_server, *listens, *keeps_nothing], log):
        _until(socket.exists)
        with _running([sys.executable, "-m", "celery", "-A", __name__, "worker", *processes], log):
            redis = _redis(os.getpid())
            _until(lambda: _all_are_up(redis))
            _until(lambda: not redis.exists("celery"))  # nothing that was asked waits any more
            yield lambda mini_batches: _run(redis, what, mini_batches)
