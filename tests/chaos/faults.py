"""Injects faults into a running cluster at random, with a seed that makes the choices repeatable."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from tests.cluster import Cluster

_PAUSE_S = 0.8
"""At least: twice the lease of these scenarios, so that others have done what the agent held when it wakes."""
_PAUSE_EVERY = 6
_RESTART_EVERY = 5
_SWEEP = """
import sys, time
from pathlib import Path
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sweep import Sweeper
at_once = 1e-9
rules = Rules(
    keep_jobs_days=at_once, keep_jobs=1, keep_notice_days=0, keep_parts_days=at_once, keep_logs_days=at_once,
    keep_steps_days=at_once,
)
while True:
    time.sleep(0.3)  # the jobs need the machine, too
    Sweeper(Path(sys.argv[1]), rules, settle_s=0.05).run(is_urgent=True)
"""
"""Sweeps of retention without an end, by rules that keep nothing that nobody needs."""
"""Kills after which an agent is paused and Redis restarted: by count, so that no seed and no machine goes without."""


class FaultInjector:
    """Kills workers and agents at random times, in a thread, as long as the `with` statement lasts.

    Args:
        marks: a folder with a file for each worker that is past init(), named by its process id.
        past_init: which workers are killed: those past init(), or those before it.
        redis_restarts: how often Redis is killed and started again.
        every_s: the most time between two kills; half of it on average.
    """

    def __init__(
        self, cluster: Cluster, *, seed: int, marks: Path, past_init: bool = True, agents: bool = True,
        redis_restarts: int = 0, pauses: bool = False, all_roles: bool = False, most_kills: int = 1_000_000,
        every_s: float = 0.12,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._random = random.Random(seed)
        self._marks = marks
        self._past_init = past_init
        self._agents = agents
        self._pauses = pauses
        self._all_roles = all_roles
        self._most_kills = most_kills
        self._every_s = every_s
        self._redis_restarts = redis_restarts
        self._sweep: subprocess.Popen[bytes] | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fault-injector", daemon=True)
        self.count: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._kill_sweep()

    def _work(self) -> None:
        while not self._done.wait(self._random.uniform(0, self._every_s)) and self.count["kills"] < self._most_kills:
            kills = self.count["kills"]
            if self.count["redis_restarts"] < min(self._redis_restarts, kills // _RESTART_EVERY):
                self._restart_redis()
            elif self._pauses and self.count["pauses"] < kills // _PAUSE_EVERY:
                self._pause_agent()
            elif self._agents and self._random.random() < 0.05:
                self._kill_agent()
            elif self._all_roles and self._random.random() < 0.05:
                self._kill_service()
            elif self._all_roles and self._random.random() < 0.05:
                self._kill_sweep()
                self._sweep = subprocess.Popen([sys.executable, "-c", _SWEEP, str(self._cluster.root)])
            else:
                self._kill_worker()

    def _restart_redis(self) -> None:
        """Redis is down for longer than a lease: every agent's session has ended when it is back."""
        self._cluster.redis_server.kill()
        self._done.wait(0.6)
        self._cluster.redis_server.start()
        self.count["redis_restarts"] += 1

    def _kill_agent(self) -> None:
        node = self._random.choice(self._cluster.nodes)
        self._cluster.kill(node)
        self._cluster.start(node)
        self.count["kills"] += 1

    def _kill_service(self) -> None:
        """The master with all its leaders, a leader alone, the concatenator, or the API."""
        name = self._random.choice(["master", "leader", "concatenator", "api"])
        if name == "leader":
            for leader in self._cluster.leaders():
                with suppress(psutil.NoSuchProcess):  # it has just ended
                    leader.kill()
        else:
            self._cluster.kill(name)
            self._cluster.start(name)
        self.count["kills"] += 1
        self.count[f"{name}_kills"] += 1

    def _kill_sweep(self) -> None:
        """The process that sweeps the root folder, at any step."""
        if self._sweep is not None:
            self._sweep.kill()
            self._sweep.wait()
            self._sweep = None
            self.count["sweep_kills"] += 1

    def _pause_agent(self) -> None:
        process = self._cluster.processes[self._random.choice(self._cluster.nodes)]
        process.send_signal(signal.SIGSTOP)
        self._done.wait(self._random.uniform(1.0, 2.0) * _PAUSE_S)
        process.send_signal(signal.SIGCONT)
        self.count["pauses"] += 1

    def _kill_worker(self) -> None:
        workers = [pid for pid in self._workers() if self._is_past_init(pid) == self._past_init]
        if not workers:
            return
        pid = self._random.choice(workers)
        try:
            os.kill(pid, signal.SIGSTOP)  # it must not get through init() between the look and the kill
            if self._is_past_init(pid) == self._past_init:
                os.kill(pid, signal.SIGKILL)
                self.count["kills"] += 1
            else:
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return

    def _is_past_init(self, pid: int) -> bool:
        return (self._marks / str(pid)).exists()

    def _workers(self) -> list[int]:
        found = []
        for node in self._cluster.nodes:
            try:
                for child in psutil.Process(self._cluster.processes[node].pid).children():
                    if "parallelrun_worker" in child.cmdline():
                        found.append(child.pid)
            except psutil.Error:
                continue
        return sorted(found)
